/* print.c: facts as a line of JSON, or for people: a line for each, lists of objects as tables. */
#include "lab/inspect/inspect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 8, CELL_BYTES = 96, INDENT = 4 };

/* Prints text without control characters; lines after the first are indented. */
static void put_text(const char *text, int indent) {
	for (; *text; text++) {
		if (*text == '\n' && text[1])
			printf("\n%*s", indent, "");
		else if (*text != '\n')
			putchar((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text);
	}
}

/* Writes a value in a few words. */
static void to_cell(const json_t *v, char out[CELL_BYTES]) {
	out[0] = '\0';
	if (json_is_string(v)) {
		snprintf(out, CELL_BYTES, "%s", json_string_value(v));
		return;
	}
	if (json_is_array(v)) {
		size_t used = 0;
		for (size_t i = 0; i < json_array_size(v) && used < CELL_BYTES - 1; i++) {
			char part[CELL_BYTES];
			to_cell(json_array_get(v, i), part);
			used += (size_t)snprintf(out + used, CELL_BYTES - used, "%s%s", i ? " " : "", part);
		}
		return;
	}
	char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
	snprintf(out, CELL_BYTES, "%s", text ? text : "");
	free(text);
}

/* Prints a table whose columns are the keys of the first row. */
static void print_rows(const json_t *rows) {
	json_t *first = json_array_get(rows, 0), *value, *row;
	const char *keys[MAX_COLUMNS], *key;
	int widths[MAX_COLUMNS] = {0}, n = 0;
	json_object_foreach(first, key, value) {
		if (n < MAX_COLUMNS)
			keys[n++] = key;
	}
	for (int pass = 0; pass < 2; pass++) {
		size_t i;
		json_array_foreach(rows, i, row) {
			for (int k = 0; k < n; k++) {
				char cell[CELL_BYTES];
				to_cell(json_object_get(row, keys[k]), cell);
				int length = (int)strlen(cell);
				widths[k] = length > widths[k] ? length : widths[k];
				if (pass == 0)
					continue;
				printf("%*s", k ? 2 : INDENT, "");
				put_text(cell, 0);
				if (k + 1 < n)
					printf("%*s", widths[k] - length, "");
			}
			if (pass == 1)
				putchar('\n');
		}
	}
}

static void print_object(const json_t *object, int indent);

/* Prints the value behind a key, to the end of its last line. */
static void print_value(const json_t *value, int indent) {
	char cell[CELL_BYTES];
	if (json_is_object(value)) {
		putchar('\n');
		print_object(value, indent + INDENT);
		return;
	}
	if (json_is_object(json_array_get(value, 0))) {
		printf("%zu\n", json_array_size(value));
		print_rows(value);
		return;
	}
	to_cell(value, cell);
	put_text(json_is_string(value) ? json_string_value(value) : cell, indent + INDENT);
	putchar('\n');
}

static void print_object(const json_t *object, int indent) {
	const char *key;
	json_t *value;
	int width = 0;
	json_object_foreach((json_t *)(uintptr_t)object, key, value) {
		width = (int)strlen(key) > width ? (int)strlen(key) : width;
	}
	json_object_foreach((json_t *)(uintptr_t)object, key, value) {
		printf("%*s", indent, "");
		put_text(key, indent);
		printf("%*s  ", width - (int)strlen(key), "");
		print_value(value, indent);
	}
}

void inspect_print(const json_t *facts, bool table) {
	if (table) {
		print_object(facts, 0);
		return;
	}
	json_dumpf(facts, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
	putchar('\n');
}
