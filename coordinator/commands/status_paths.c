/* status_paths.c: see status_paths.h. Fields that are missing or of another type in the JSON count
 * as not known. */
#include "coordinator/commands/status_paths.h"

#include <stdbool.h>
#include <string.h>

/* How one worker meets another, as it reports it. */
enum meeting { NOT_KNOWN, APART, DIALS, IS_DIALED, PUNCHED, RELAYED, MEETINGS };

/* `text` follows a count of pairs; "": such pairs are not counted. */
static const struct {
	const char *path, *letter, *legend, *text;
} meetings[MEETINGS] = {
	[NOT_KNOWN] = {"", ".", "not known", "not met yet"},
	[APART] = {"apart", "-", "apart", "apart"},
	[DIALS] = {"dialed", "D", "dials it", "direct"},
	[IS_DIALED] = {"accepted", "A", "is dialed by it", ""},
	[PUNCHED] = {"punched", "P", "both dial at one moment", "punched"},
	[RELAYED] = {"relayed", "R", "through a relay", "relayed"},
};

static bool is_alive(const json_t *member) {
	return json_is_true(json_object_get(member, "alive"));
}

static int number_of(const json_t *member) {
	return (int)json_integer_value(json_object_get(member, "member"));
}

static enum meeting meeting_of(const json_t *from, const json_t *to) {
	char key[16];
	(void)snprintf(key, sizeof key, "%d", number_of(to));
	const char *path = json_string_value(json_object_get(json_object_get(from, "paths"), key));
	for (int i = APART; path != NULL && i < MEETINGS; i++)
		if (strcmp(path, meetings[i].path) == 0)
			return (enum meeting)i;
	return NOT_KNOWN;
}

/* Returns how a pair meets: a link that one of the two reports is one. */
static enum meeting pair_of(const json_t *a, const json_t *b) {
	enum meeting x = meeting_of(a, b), y = meeting_of(b, a);
	enum meeting both = x > y ? x : y;
	return both == IS_DIALED ? DIALS : both;
}

void status_paths_summary(const json_t *status, FILE *out) {
	const json_t *members = json_object_get(status, "members"), *a, *b;
	int count[MEETINGS] = {0}, pairs = 0;
	size_t i, j;
	json_array_foreach(members, i, a) {
		json_array_foreach(members, j, b) {
			if (i >= j || !is_alive(a) || !is_alive(b))
				continue;
			count[pair_of(a, b)]++;
			pairs++;
		}
	}
	if (pairs == 0)
		return;
	(void)fprintf(out, "links: %d of %d pairs", pairs - count[NOT_KNOWN] - count[APART], pairs);
	const char *between = ": ";
	for (int m = MEETINGS - 1; m >= 0; m--) {
		if (count[m] == 0 || meetings[m].text[0] == '\0')
			continue;
		(void)fprintf(out, "%s%d %s", between, count[m], meetings[m].text);
		between = ", ";
	}
	(void)fputc('\n', out);
}

static bool has(const json_t *numbers, int number) {
	const json_t *n;
	size_t i;
	json_array_foreach(numbers, i, n) {
		if (json_integer_value(n) == number)
			return true;
	}
	return false;
}

/* Writes the letter of the meeting, and a mark if the link is within one house or over IPv6. */
static void print_meeting(const json_t *row, const json_t *column, FILE *out) {
	char text[8] = "";
	bool lan = has(json_object_get(row, "lan"), number_of(column));
	bool ipv6 = has(json_object_get(row, "ipv6"), number_of(column));
	if (column != row)
		(void)snprintf(text, sizeof text, "%s%s%s", meetings[meeting_of(row, column)].letter, lan ? "h" : "",
					   ipv6 ? "6" : "");
	(void)fprintf(out, " %3s", text);
}

static void print_row(const json_t *members, const json_t *row, FILE *out) {
	const json_t *column;
	size_t i;
	(void)fprintf(out, "  %3d", number_of(row));
	json_array_foreach(members, i, column) {
		if (is_alive(column))
			print_meeting(row, column, out);
	}
	const char *reach = json_string_value(json_object_get(row, "reach"));
	(void)fprintf(out, "%s%s\n", reach != NULL ? "  reach: " : "", reach != NULL ? reach : "");
}

void status_paths_matrix(const json_t *status, FILE *out) {
	const json_t *members = json_object_get(status, "members"), *m;
	size_t i;
	(void)fprintf(out, "how the worker of a row meets the one of a column:\n  %3s", "");
	json_array_foreach(members, i, m) {
		if (is_alive(m))
			(void)fprintf(out, " %3d", number_of(m));
	}
	(void)fputc('\n', out);
	json_array_foreach(members, i, m) {
		if (is_alive(m))
			print_row(members, m, out);
	}
	for (int k = MEETINGS - 1; k >= 0; k--)
		(void)fprintf(out, "%s%s %s", k == MEETINGS - 1 ? "  " : ", ", meetings[k].letter, meetings[k].legend);
	(void)fputs("; h: by a private address, 6: by IPv6\n", out);
}
