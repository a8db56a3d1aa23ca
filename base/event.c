/* event.c: events as text for people and as JSON lines for machines; one progress line under the
 * text. */
#include "base/event.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/progress.h"
#include "base/terminal.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FIELDS_MAX = 48, SENTENCE_BYTES = 1024, REDRAW_US = 100000 };

struct rv_events {
	pthread_mutex_t lock; /* guards everything below */
	FILE *out, *log;
	bool json, redraws;
	enum rv_level level;
	struct rv_progress_state progress;
	int64_t drawn_us;
	bool drawn; /* the cursor is on a progress line */
};

enum rv_err rv_events_new(const struct rv_events_config *cfg, struct rv_events **out, struct rv_errtext *et) {
	*out = NULL;
	struct rv_events *ev = calloc(1, sizeof *ev);
	if (!ev)
		return rv_fail(et, RV_E_NOMEM, "events: no memory");
	if (cfg->log_path) {
		ev->log = fopen(cfg->log_path, "ae");
		if (!ev->log) {
			enum rv_err e = rv_fail_errno(et, errno, "%s: cannot open the log file", cfg->log_path);
			free(ev);
			return e;
		}
	}
	int rc = pthread_mutex_init(&ev->lock, NULL);
	RV_ASSERT(rc == 0);
	ev->out = cfg->out;
	ev->json = cfg->json;
	ev->level = cfg->level;
	ev->redraws = rv_terminal_can_redraw(fileno(cfg->out));
	ev->drawn_us = INT64_MIN;
	*out = ev;
	return RV_OK;
}

void rv_events_free(struct rv_events *ev) {
	if (!ev)
		return;
	rv_progress_clear(ev);
	(void)fflush(ev->out);
	if (ev->log)
		(void)fclose(ev->log);
	pthread_mutex_destroy(&ev->lock);
	free(ev);
}

struct rv_field rv_field_int(const char *key, int64_t v) {
	return (struct rv_field){.key = key, .kind = RV_F_INT, .i = v};
}

struct rv_field rv_field_double(const char *key, double v) {
	return (struct rv_field){.key = key, .kind = RV_F_DOUBLE, .d = v};
}

struct rv_field rv_field_str(const char *key, const char *v) {
	return (struct rv_field){.key = key, .kind = RV_F_STR, .s = v};
}

struct rv_field rv_field_bool(const char *key, bool v) {
	return (struct rv_field){.key = key, .kind = RV_F_BOOL, .i = v};
}

/* Replaces bytes of invalid UTF-8 (from a peer) by question marks, so that the event is not
 * lost. */
static json_t *json_text(const char *s) {
	if (!s)
		return json_null();
	json_t *text = json_string(s);
	if (text)
		return text;
	char *ascii = strdup(s);
	for (char *c = ascii; c && *c; c++) {
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	}
	text = json_string(ascii);
	free(ascii);
	return text;
}

static json_t *json_of_field(const struct rv_field *f) {
	switch (f->kind) {
	case RV_F_INT:
		return json_integer(f->i);
	case RV_F_DOUBLE:
		return isfinite(f->d) ? json_real(f->d) : json_null();
	case RV_F_STR:
		return json_text(f->s);
	case RV_F_BOOL:
		return json_boolean(f->i);
	case RV_F_END:
		break;
	}
	RV_UNREACHABLE("field kind");
}

static const char *level_name(enum rv_level level) {
	static const char *const names[] = {"debug", "info", "warn", "error"};
	RV_ASSERT(level >= RV_DEBUG && level <= RV_ERROR);
	return names[level];
}

/* Returns the event as one JSON line (the caller frees it); NULL without memory. */
static char *json_line(int64_t wall_us, enum rv_level level, const char *name, const struct rv_field *fields,
					   const char *sentence) {
	json_t *o = json_object();
	int bad = json_object_set_new(o, "t", json_real(floor((double)wall_us / 1e3) / 1e3));
	bad |= json_object_set_new(o, "level", json_string(level_name(level)));
	bad |= json_object_set_new(o, "event", json_text(name));
	for (int i = 0; fields[i].kind != RV_F_END; i++) {
		RV_ASSERT(i < FIELDS_MAX);
		bad |= json_object_set_new(o, fields[i].key, json_of_field(&fields[i]));
	}
	if (sentence[0])
		bad |= json_object_set_new(o, "text", json_text(sentence));
	char *line = bad ? NULL : json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(15));
	json_decref(o);
	return line;
}

/* Removes control characters: an event may quote a peer or a file name, whose escape sequences must
 * not reach a terminal. */
static void strip_controls(char *s) {
	for (; *s; s++) {
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			*s = '?';
	}
}

static void clear_progress(struct rv_events *ev) {
	if (ev->drawn)
		(void)fputs("\r\033[K", ev->out);
	ev->drawn = false;
	ev->drawn_us = INT64_MIN;
}

static void write_text(struct rv_events *ev, int64_t wall_us, enum rv_level level, const char *sentence) {
	time_t t = (time_t)(wall_us / RV_US_PER_S);
	struct tm tm;
	char clock[24] = "";
	if (localtime_r(&t, &tm))
		(void)strftime(clock, sizeof clock, "%Y-%m-%d %H:%M:%S", &tm);
	const char *prefix = level == RV_WARN ? "warning: " : level == RV_ERROR ? "error: " : "";
	clear_progress(ev);
	(void)fprintf(ev->out, "%s %s%s\n", clock, prefix, sentence);
	(void)fflush(ev->out);
}

static void write_line(FILE *out, const char *line) {
	(void)fprintf(out, "%s\n", line);
	(void)fflush(out);
}

static void emit(struct rv_events *ev, enum rv_level level, const char *name, const struct rv_field *fields,
				 bool to_people, const char *fmt, va_list ap) {
	char sentence[SENTENCE_BYTES];
	bool shown = level >= ev->level;
	if (!shown && ev->log == NULL)
		return;
	(void)vsnprintf(sentence, sizeof sentence, fmt, ap);
	strip_controls(sentence);
	int64_t wall_us = rv_clock_wall_us();
	char *line = ev->json || ev->log ? json_line(wall_us, level, name, fields, sentence) : NULL;
	(void)pthread_mutex_lock(&ev->lock);
	if (shown && !ev->json && to_people)
		write_text(ev, wall_us, level, sentence);
	else if (shown && ev->json && line)
		write_line(ev->out, line);
	if (ev->log && line)
		write_line(ev->log, line);
	(void)pthread_mutex_unlock(&ev->lock);
	free(line);
}

void rv_event(struct rv_events *ev, enum rv_level level, const char *name, const struct rv_field *fields,
			  const char *fmt, ...) {
	va_list ap;
	va_start(ap, fmt);
	emit(ev, level, name, fields, true, fmt, ap);
	va_end(ap);
}

void rv_event_in_log(struct rv_events *ev, enum rv_level level, const char *name, const struct rv_field *fields,
					 const char *fmt, ...) {
	va_list ap;
	va_start(ap, fmt);
	emit(ev, level, name, fields, false, fmt, ap);
	va_end(ap);
}

void rv_progress(struct rv_events *ev, int64_t now_us, const char *label, uint64_t done, uint64_t total,
				 const char *unit, const char *note) {
	if (ev->json || !ev->redraws)
		return;
	(void)pthread_mutex_lock(&ev->lock);
	rv_progress_observe(&ev->progress, now_us, label, done);
	bool due = ev->drawn_us == INT64_MIN || now_us - ev->drawn_us >= REDRAW_US || done == total;
	if (due) {
		char line[RV_TERMINAL_COLUMNS_MAX];
		(void)rv_progress_render(&ev->progress, total, unit, note, line, (size_t)rv_terminal_columns(fileno(ev->out)));
		strip_controls(line);
		(void)fprintf(ev->out, "\r%s\033[K", line);
		(void)fflush(ev->out);
		ev->drawn = true;
		ev->drawn_us = now_us;
	}
	(void)pthread_mutex_unlock(&ev->lock);
}

void rv_progress_clear(struct rv_events *ev) {
	(void)pthread_mutex_lock(&ev->lock);
	clear_progress(ev);
	(void)fflush(ev->out);
	(void)pthread_mutex_unlock(&ev->lock);
}
