/* SPDX-License-Identifier: MIT */
/*
 * inih splits lines into keys and values and calls back for each pair, but it tells
 * neither the line of a pair nor that a section began, and it cuts long lines and
 * long section names without a word. So it is fed through a reader of ours, which
 * hands out one line at a time: the line last handed out is the line of whatever
 * inih calls back with, and section headers are taken here, on their way. Leading
 * blanks are dropped from each line, which also keeps inih from gluing an indented
 * line to the value above it.
 *
 * Everything found is kept in order: sections in an array, each with an array of
 * entries. Arrays double when their length reaches a power of two.
 */
#include "base/ini.h"
#include "base/bits.h"
#include "base/infile.h"
#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX_BYTES (16 << 20)

struct reading {
	struct ini *ini;
	const char *next; /* text not handed out yet */
	int line;         /* number of the line handed out last */
	int error;        /* first negative errno; reading stops there */
	int error_line;
	struct err *e;
	struct err cause;
};

#define fail(r, ...) fail_with(r, err_set(&(r)->cause, (r)->ini->path, (r)->line, __VA_ARGS__))

static int fail_with(struct reading *r, int error)
{
	if (!r->error) {
		r->error = error;
		r->error_line = r->line;
	}
	return error;
}

static int out_of_memory(struct reading *r)
{
	fail(r, "out of memory");
	r->error = -ENOMEM;
	return -ENOMEM;
}

/* Makes room for one element more behind `count`; false without memory. */
static bool grow(void *array, size_t count, size_t element_bytes)
{
	void *old, *wider;

	if (count & (count - 1) || (count && count < 4))
		return true;
	memcpy(&old, array, sizeof(old));
	wider = reallocarray(old, max_u64(4, count * 2), element_bytes);
	if (!wider)
		return false;
	memcpy(array, &wider, sizeof(wider));
	return true;
}

static int begin_section(struct reading *r, const char *name, size_t len, int line)
{
	struct ini *ini = r->ini;
	struct ini_section *s;

	if (!grow(&ini->sections, ini->section_count, sizeof(*s)))
		return out_of_memory(r);
	s = &ini->sections[ini->section_count];
	*s = (struct ini_section){ .name = strndup(name, len), .line = line };
	if (!s->name)
		return out_of_memory(r);
	ini->section_count++;
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool is_comment(char c)
{
	return c == ';' || c == '#';
}

/* `text` starts with '[' and is `len` bytes long. */
static int read_section(struct reading *r, const char *text, size_t len)
{
	const char *end = memchr(text, ']', len), *rest;

	if (!end)
		return fail(r, "the section name is not closed: ']' is missing");
	for (rest = end + 1; rest < text + len && is_blank(*rest); rest++)
		;
	if (rest < text + len && !is_comment(*rest))
		return fail(r, "text after the section name: \"%.*s\"", (int)(text + len - rest),
			    rest);
	for (text++; text < end && is_blank(*text); text++)
		;
	while (end > text && is_blank(end[-1]))
		end--;
	if (text == end)
		return fail(r, "the section has no name");
	return begin_section(r, text, (size_t)(end - text), r->line);
}

/* Bytes of the UTF-8 character at text (RFC 3629), 0 if it is none; control characters are none. */
static size_t character(const char *text, size_t len)
{
	const u8 *c = (const u8 *)text;
	u32 code, n, least;

	if (*c < 0x80)
		return *c >= 0x20 || *c == '\t' ? *c != 0x7f : 0;
	n = *c >= 0xf0 ? 4 : *c >= 0xe0 ? 3 : 2;
	if (*c < 0xc2 || *c > 0xf4 || n > len)
		return 0;
	code = *c & (0x7f >> n);
	for (u32 i = 1; i < n; i++) {
		if ((c[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (c[i] & 0x3f);
	}
	least = n == 2 ? 0x80 : n == 3 ? 0x800 : 0x10000;
	return code >= least && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? n : 0;
}

/* Whether the line is UTF-8 without control characters. */
static bool is_text(const char *text, size_t len)
{
	while (len) {
		size_t n = character(text, len);

		if (!n)
			return false;
		text += n;
		len -= n;
	}
	return true;
}

/*
 * fgets() for inih: the next line into `buffer`, NULL at the end. Section headers are handed
 * out as empty lines, so that inih counts them and does nothing.
 */
static char *next_line(char *buffer, int size, void *stream)
{
	struct reading *r = stream;
	size_t len;
	const char *text = r->next;

	if (r->error || !*text)
		return NULL;
	len = strcspn(text, "\n");
	r->next = text + len + (text[len] == '\n');
	r->line++;
	for (; len && is_blank(*text); text++)
		len--;
	while (len && is_blank(text[len - 1]))
		len--;
	if (!is_text(text, len)) {
		fail(r, "the line is not text in UTF-8");
		return NULL;
	}
	if (*text == '[') {
		if (read_section(r, text, len))
			return NULL;
		len = 0;
	} else if (is_comment(*text)) {
		len = 0;
	}
	if (len + 2 > (size_t)size) {
		fail(r, "the line has %zu bytes, %d are allowed", len, size - 2);
		return NULL;
	}
	memcpy(buffer, text, len);
	memcpy(buffer + len, "\n", 2);
	return buffer;
}

static int add_entry(void *user, const char *section, const char *key, const char *value)
{
	struct reading *r = user;
	struct ini_section *s;
	struct ini_entry *entry;

	(void)section; /* the reader knows it, and in full */
	if (r->error)
		return 0;
	if (!*key) {
		fail(r, "there is no key before the '='");
		return 0;
	}
	if (!r->ini->section_count && begin_section(r, "", 0, r->line))
		return 0;
	s = &r->ini->sections[r->ini->section_count - 1];
	if (!grow(&s->entries, s->entry_count, sizeof(*entry)))
		return !out_of_memory(r);
	entry = &s->entries[s->entry_count];
	*entry = (struct ini_entry){ .key = strdup(key), .value = strdup(value), .line = r->line };
	s->entry_count++;
	return entry->key && entry->value ? 1 : !out_of_memory(r);
}

int ini_load_text(struct ini *ini, const char *path, const char *text, struct err *e)
{
	struct reading r = { .ini = ini, .next = text };
	int bad_line;

	*ini = (struct ini){ .path = strdup(path) };
	if (!ini->path) {
		err_set(e, path, 0, "out of memory");
		return -ENOMEM;
	}
	if (!strncmp(text, "\xef\xbb\xbf", 3))
		r.next += 3; /* the mark some editors put before UTF-8 text */
	bad_line = ini_parse_stream(next_line, &r, add_entry, &r);
	if (bad_line > 0 && (!r.error || bad_line < r.error_line)) {
		/* the only thing inih itself refuses */
		r.cause.text[0] = 0;
		r.error = err_set(&r.cause, path, bad_line,
				  "expected \"key = value\" or \"[section]\": '=' is missing");
	} else if (bad_line < 0) {
		out_of_memory(&r);
	}
	if (r.error) {
		err_set(e, NULL, 0, "%s", r.cause.text);
		ini_finish(ini);
	}
	return r.error;
}

/* The whole file as a string, or NULL with errno set. */
static char *slurp(int fd)
{
	char *text = malloc(FILE_MAX_BYTES + 1);
	size_t len = 0;

	if (!text)
		return NULL;
	for (;;) {
		ssize_t n = read(fd, text + len, FILE_MAX_BYTES + 1 - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || len + (size_t)n > FILE_MAX_BYTES) {
			int error = n < 0 ? errno : EFBIG;

			free(text);
			errno = error;
			return NULL;
		}
		if (!n)
			break;
		len += (size_t)n;
	}
	text[len] = 0;
	if (strlen(text) != len) {
		free(text);
		errno = EILSEQ;
		return NULL;
	}
	return text;
}

int ini_load(struct ini *ini, const char *path, struct err *e)
{
	int fd = infile_open(path), error;
	char *text = fd < 0 ? NULL : slurp(fd);

	error = fd < 0 ? fd : -errno;
	if (fd >= 0)
		close(fd);
	if (!text) {
		*ini = (struct ini){ 0 };
		err_set(e, path, 0, "%s",
			error == -EILSEQ ? "not a text file: it has NUL bytes"
					 : infile_error(error));
		return error;
	}
	error = ini_load_text(ini, path, text, e);
	free(text);
	return error;
}

void ini_finish(struct ini *ini)
{
	for (size_t i = 0; i < ini->section_count; i++) {
		struct ini_section *s = &ini->sections[i];

		for (size_t j = 0; j < s->entry_count; j++) {
			free(s->entries[j].key);
			free(s->entries[j].value);
		}
		free(s->entries);
		free(s->name);
	}
	free(ini->sections);
	free(ini->path);
	*ini = (struct ini){ 0 };
}

struct ini_section *ini_section(struct ini *ini, const char *name)
{
	for (size_t i = 0; i < ini->section_count; i++)
		if (!strcmp(ini->sections[i].name, name))
			return &ini->sections[i];
	return NULL;
}

struct ini_entry *ini_get(struct ini_section *section, const char *key)
{
	struct ini_entry *last = NULL;

	for (size_t i = 0; i < section->entry_count; i++) {
		struct ini_entry *entry = &section->entries[i];

		if (!strcmp(entry->key, key)) {
			entry->used = true;
			last = entry;
		}
	}
	return last;
}

int ini_refuse_unused(const struct ini *ini, const struct ini_section *section,
		      const char *const *known, size_t known_count, struct err *e)
{
	for (size_t i = 0; i < section->entry_count; i++) {
		const struct ini_entry *entry = &section->entries[i];
		const char *nearest;

		if (entry->used)
			continue;
		nearest = err_nearest(entry->key, known, known_count);
		return err_set(e, ini->path, entry->line,
			       "unknown key \"%s\" in section [%s]%s%s%s", entry->key,
			       section->name, nearest ? "; did you mean \"" : "",
			       nearest ? nearest : "", nearest ? "\"?" : "");
	}
	return 0;
}

int ini_refuse_duplicates(const struct ini *ini, const struct ini_section *section,
			  const char *repeatable, struct err *e)
{
	for (size_t i = 0; i < section->entry_count; i++) {
		const struct ini_entry *entry = &section->entries[i];

		for (size_t j = 0; j < i; j++)
			if (!strcmp(entry->key, section->entries[j].key) &&
			    (!repeatable || strcmp(entry->key, repeatable) != 0))
				return err_set(
					e, ini->path, entry->line,
					"\"%s\" stands twice in section [%s], first on line %d",
					entry->key, section->name, section->entries[j].line);
	}
	return 0;
}
