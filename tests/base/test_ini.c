/* SPDX-License-Identifier: MIT */
/* INI files: what is kept, with which line, and what is refused with which message. */
#include "base/ini.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static void parse(struct ini *ini, const char *text)
{
	struct err e = { "" };

	assert_int_equal(ini_load_text(ini, "t.ini", text, &e), 0);
	assert_string_equal(e.text, "");
}

static void refuse(const char *text, const char *message)
{
	struct ini ini;
	struct err e = { "" };

	assert_int_equal(ini_load_text(&ini, "t.ini", text, &e), -EINVAL);
	assert_string_equal(e.text, message);
	assert_null(ini.sections); /* nothing to free */
	assert_int_equal(ini_load_text(&ini, "t.ini", text, NULL), -EINVAL);
}

static void entry_is(const struct ini_entry *entry, const char *key, const char *value, int line)
{
	assert_non_null(entry);
	assert_string_equal(entry->key, key);
	assert_string_equal(entry->value, value);
	assert_int_equal(entry->line, line);
}

static void sections_and_entries_with_lines(void **state)
{
	struct ini ini;

	(void)state;
	parse(&ini, "; an experiment\n"
		    "\n"
		    "[machine]\n"
		    "ram = 128g\n"
		    "  cpus=32   ; a remark\n"
		    "# another\n"
		    "[ empty ]\n"
		    "[case one] # remark\n"
		    "policy : linux\n"
		    "note = a = b ; c\n"
		    "nothing =");
	assert_string_equal(ini.path, "t.ini");
	assert_int_equal(ini.section_count, 3);
	assert_string_equal(ini.sections[0].name, "machine");
	assert_int_equal(ini.sections[0].line, 3);
	assert_int_equal(ini.sections[0].entry_count, 2);
	entry_is(&ini.sections[0].entries[0], "ram", "128g", 4);
	entry_is(&ini.sections[0].entries[1], "cpus", "32", 5);
	assert_string_equal(ini.sections[1].name, "empty");
	assert_int_equal(ini.sections[1].line, 7);
	assert_int_equal(ini.sections[1].entry_count, 0);
	assert_string_equal(ini.sections[2].name, "case one");
	assert_int_equal(ini.sections[2].line, 8);
	assert_int_equal(ini.sections[2].entry_count, 3);
	entry_is(&ini.sections[2].entries[0], "policy", "linux", 9);
	entry_is(&ini.sections[2].entries[1], "note", "a = b", 10);
	entry_is(&ini.sections[2].entries[2], "nothing", "", 11);
	ini_finish(&ini);
}

static void repeated_sections_and_keys_are_kept(void **state)
{
	struct ini ini;
	struct ini_section *s;

	(void)state;
	parse(&ini, "[a]\nk = 1\nk = 2\nother = 3\n[a]\n[a]\nk = 4\n");
	assert_int_equal(ini.section_count, 3);
	assert_int_equal(ini.sections[1].line, 5);
	assert_int_equal(ini.sections[2].line, 6);
	s = ini_section(&ini, "a");
	assert_ptr_equal(s, &ini.sections[0]);
	assert_int_equal(s->entry_count, 3);
	entry_is(ini_get(s, "k"), "k", "2", 3);
	assert_true(s->entries[0].used && s->entries[1].used && !s->entries[2].used);
	assert_null(ini_get(s, "K"));
	assert_null(ini_section(&ini, "b"));
	entry_is(ini_get(&ini.sections[2], "k"), "k", "4", 7);
	ini_finish(&ini);
}

static void entries_before_any_section(void **state)
{
	struct ini ini;

	(void)state;
	parse(&ini, "\nk = v\n[a]\n");
	assert_int_equal(ini.section_count, 2);
	assert_string_equal(ini.sections[0].name, "");
	entry_is(ini_get(ini_section(&ini, ""), "k"), "k", "v", 2);
	ini_finish(&ini);
	parse(&ini, "");
	assert_int_equal(ini.section_count, 0);
	ini_finish(&ini);
}

static void byte_order_mark_and_crlf(void **state)
{
	struct ini ini;

	(void)state;
	parse(&ini, "\xef\xbb\xbf[a]\r\nk = v w\r\n\r\n[b]\r\nx=1\r\n");
	assert_int_equal(ini.section_count, 2);
	assert_string_equal(ini.sections[0].name, "a");
	entry_is(ini_get(&ini.sections[0], "k"), "k", "v w", 2);
	entry_is(ini_get(&ini.sections[1], "x"), "x", "1", 5);
	ini_finish(&ini);
	parse(&ini, "\xef\xbb\xbfk = v\n");
	entry_is(ini_get(&ini.sections[0], "k"), "k", "v", 1);
	ini_finish(&ini);
}

static void many_sections_and_entries(void **state)
{
	char text[64 * 1024];
	size_t at = 0;
	struct ini ini;

	(void)state;
	for (int s = 0; s < 40; s++) {
		at += (size_t)sprintf(text + at, "[s%d]\n", s);
		for (int k = 0; k < s; k++)
			at += (size_t)sprintf(text + at, "k%d = %d\n", k, s * k);
	}
	parse(&ini, text);
	assert_int_equal(ini.section_count, 40);
	for (int s = 0, line = 1; s < 40; s++, line++) {
		assert_int_equal(ini.sections[s].line, line);
		assert_int_equal(ini.sections[s].entry_count, s);
		for (int k = 0; k < s; k++) {
			char key[16], value[16];

			sprintf(key, "k%d", k);
			sprintf(value, "%d", s * k);
			entry_is(ini_get(&ini.sections[s], key), key, value, ++line);
		}
	}
	ini_finish(&ini);
}

static void refused_lines(void **state)
{
	static const char missing[] = "expected \"key = value\" or \"[section]\": '=' is missing";
	char message[200];

	(void)state;
	sprintf(message, "t.ini:2: %s", missing);
	refuse("[a]\nword\n", message);
	sprintf(message, "t.ini:3: %s", missing);
	refuse("[a]\nk = v\n  continued\n", message); /* no lines glued to the one above */
	refuse("[a]\n[b\nk = v\n", "t.ini:2: the section name is not closed: ']' is missing");
	refuse("[]\n", "t.ini:1: the section has no name");
	/* no text: a lone byte, one cut short, an overlong slash, a surrogate, too far, ESC */
	refuse("[a]\nk = \xff\n", "t.ini:2: the line is not text in UTF-8");
	refuse("[a\xc3]\n", "t.ini:1: the line is not text in UTF-8");
	refuse("[a]\nk = \xc0\xaf\n", "t.ini:2: the line is not text in UTF-8");
	refuse("[a]\nk = \xed\xa0\x80\n", "t.ini:2: the line is not text in UTF-8");
	refuse("[a]\nk = \xf4\x90\x80\x80\n", "t.ini:2: the line is not text in UTF-8");
	refuse("[a]\nk = \x1b[31m\n", "t.ini:2: the line is not text in UTF-8");
	refuse("[ \t]\n", "t.ini:1: the section has no name");
	refuse("[a] k = v\n", "t.ini:1: text after the section name: \"k = v\"");
	refuse("[a]\n = v\n", "t.ini:2: there is no key before the '='");
}

static void first_error_is_the_one_reported(void **state)
{
	(void)state;
	refuse("[a]\nword\n[b\n",
	       "t.ini:2: expected \"key = value\" or \"[section]\": '=' is missing");
	refuse("[a]\n[b\nword\n", "t.ini:2: the section name is not closed: ']' is missing");
	refuse("[a]\nword\n= v\n",
	       "t.ini:2: expected \"key = value\" or \"[section]\": '=' is missing");
	refuse("= v\nword\n", "t.ini:1: there is no key before the '='");
}

static void long_lines(void **state)
{
	char text[1000], filler[600];
	struct ini ini;

	(void)state;
	memset(filler, 'x', sizeof(filler));
	/* 198 bytes are what inih takes (its buffer of 200, less newline and end) */
	snprintf(text, sizeof(text), "[a]\nk=%.196s\nl=1\n", filler);
	parse(&ini, text);
	assert_int_equal(strlen(ini_get(&ini.sections[0], "k")->value), 196);
	entry_is(ini_get(&ini.sections[0], "l"), "l", "1", 3);
	ini_finish(&ini);
	snprintf(text, sizeof(text), "[a]\nk=%.197s\nl=1\n", filler);
	refuse(text, "t.ini:2: the line has 199 bytes, 198 are allowed");
	/* comments and section names may be as long as they like */
	snprintf(text, sizeof(text), "; %.500s\n[%.300s]\nl=1\n", filler, filler);
	parse(&ini, text);
	assert_int_equal(strlen(ini.sections[0].name), 300);
	entry_is(ini_get(&ini.sections[0], "l"), "l", "1", 3);
	ini_finish(&ini);
	/* so may keys, which inih would cut to 49 bytes if it had to remember them */
	snprintf(text, sizeof(text), "%.100s = 1\n", filler);
	parse(&ini, text);
	assert_int_equal(strlen(ini.sections[0].entries[0].key), 100);
	ini_finish(&ini);
}

static void unread_keys_are_unknown(void **state)
{
	static const char *const known[] = { "ram", "cpus" };
	struct ini ini;
	struct err e = { "" };

	(void)state;
	parse(&ini, "[m]\nram = 1\nram = 2\ncpsu = 3\nweight = 4\n");
	ini_get(&ini.sections[0], "ram");
	assert_int_equal(ini_refuse_unused(&ini, &ini.sections[0], known, 2, &e), -EINVAL);
	assert_string_equal(e.text,
			    "t.ini:4: unknown key \"cpsu\" in section [m]; did you mean \"cpus\"?");
	ini.sections[0].entries[2].used = true;
	e.text[0] = 0;
	assert_int_equal(ini_refuse_unused(&ini, &ini.sections[0], known, 2, &e), -EINVAL);
	assert_string_equal(e.text, "t.ini:5: unknown key \"weight\" in section [m]");
	ini.sections[0].entries[3].used = true;
	assert_int_equal(ini_refuse_unused(&ini, &ini.sections[0], known, 2, &e), 0);
	ini_finish(&ini);
}

/* A file that exists only in memory, as a path. */
static int memory_file(char path[64], const void *content, size_t bytes)
{
	int fd = memfd_create("ini", 0);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, bytes), (ssize_t)bytes);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	snprintf(path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

static void files(void **state)
{
	struct ini ini;
	struct err e = { "" };
	char path[64], message[128];
	int fd = memory_file(path, "[a]\nk = v", 9);

	(void)state;
	assert_int_equal(ini_load(&ini, path, &e), 0);
	assert_string_equal(ini.path, path);
	entry_is(ini_get(&ini.sections[0], "k"), "k", "v", 2);
	ini_finish(&ini);
	close(fd);

	fd = memory_file(path, "[a]\nbad\n", 8);
	assert_int_equal(ini_load(&ini, path, &e), -EINVAL);
	snprintf(message, sizeof(message), "%s:2: expected", path);
	assert_memory_equal(e.text, message, strlen(message));
	close(fd);

	fd = memory_file(path, "k = v\0w\n", 8);
	e.text[0] = 0;
	assert_int_equal(ini_load(&ini, path, &e), -EILSEQ);
	snprintf(message, sizeof(message), "%s: not a text file: it has NUL bytes", path);
	assert_string_equal(e.text, message);
	close(fd);
}

static void files_that_cannot_be_read(void **state)
{
	struct ini ini;
	struct err e = { "" };

	(void)state;
	assert_int_equal(ini_load(&ini, "/nonexistent/x.ini", &e), -ENOENT);
	assert_string_equal(e.text, "/nonexistent/x.ini: No such file or directory");
	e.text[0] = 0;
	assert_int_equal(ini_load(&ini, "/proc", &e), -EISDIR);
	assert_string_equal(e.text, "/proc: Is a directory");
	e.text[0] = 0;
	assert_int_equal(ini_load(&ini, "/dev/zero", &e), -ENXIO);
	assert_string_equal(e.text, "/dev/zero: not a regular file");
	assert_null(ini.sections);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(sections_and_entries_with_lines),
		cmocka_unit_test(repeated_sections_and_keys_are_kept),
		cmocka_unit_test(entries_before_any_section),
		cmocka_unit_test(byte_order_mark_and_crlf),
		cmocka_unit_test(many_sections_and_entries),
		cmocka_unit_test(refused_lines),
		cmocka_unit_test(first_error_is_the_one_reported),
		cmocka_unit_test(long_lines),
		cmocka_unit_test(unread_keys_are_unknown),
		cmocka_unit_test(files),
		cmocka_unit_test(files_that_cannot_be_read),
	};

	return cmocka_run_group_tests_name("ini", tests, NULL, NULL);
}
