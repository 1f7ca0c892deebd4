/* SPDX-License-Identifier: MIT */
/* INI files under libFuzzer: any text is read, or refused in words; what was read can be asked. */
#include "base/ini.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

static void ask(struct ini *ini)
{
	static const char *const known[] = { "key", "path" };
	struct err e = { "" };

	for (size_t i = 0; i < ini->section_count; i++) {
		struct ini_section *s = &ini->sections[i];
		int rc;

		assert(s->name && ini_section(ini, s->name));
		assert(!strchr(s->name, '\n') && s->line >= 0);
		rc = ini_refuse_duplicates(ini, s, NULL, &e);
		assert(!rc == !e.text[0]);
		e.text[0] = 0;
		rc = ini_refuse_unused(ini, s, known, ARRAY_SIZE(known), &e);
		assert(!rc == !s->entry_count && !rc == !e.text[0]);
		e.text[0] = 0;
		for (size_t k = 0; k < s->entry_count; k++) {
			struct ini_entry *entry = ini_get(s, s->entries[k].key);

			assert(entry && !strcmp(entry->key, s->entries[k].key));
			assert(entry >= &s->entries[k] && entry->used && *entry->key);
			assert(entry->line >= s->line);
		}
		rc = ini_refuse_unused(ini, s, known, ARRAY_SIZE(known), &e);
		assert(!rc && !e.text[0]);
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	struct err e = { "" };
	struct ini ini;
	int rc;

	if (!text)
		return 0;
	rc = ini_load_text(&ini, "fuzz.ini", text, &e);
	assert(!rc == !e.text[0]);
	free(text);
	if (!rc) {
		ask(&ini);
		ini_finish(&ini);
	}
	return 0;
}
