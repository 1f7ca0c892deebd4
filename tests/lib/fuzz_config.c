/* SPDX-License-Identifier: MIT */
/* Settings of a cache under libFuzzer, one a line: applied, or refused in words. */
#include "lib/config.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SETTINGS_MAX 64

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	char *text = strndup((const char *)data, size), *at = text, *line;
	const char *settings[SETTINGS_MAX];
	struct lib_config c;
	struct err e = { "" };
	size_t count = 0;
	int rc;

	if (!text)
		return 0;
	while (count < SETTINGS_MAX && (line = strsep(&at, "\n")))
		settings[count++] = line;
	lib_config_init(&c);
	rc = lib_config_read(&c, settings, count, &e);
	assert(rc ? rc == -EINVAL && e.text[0] : !e.text[0]);
	if (!rc) { /* what the engine relies on */
		assert(c.block_bytes >= 512 && c.block_bytes <= PAGE_SIZE);
		assert(!(c.block_bytes & (c.block_bytes - 1)));
		assert(c.engine.vm.dirty_ratio <= 100 && c.engine.vm.dirty_background_ratio <= 100);
		assert(c.device.queue_depth >= 1);
	}
	free(text);
	return 0;
}
