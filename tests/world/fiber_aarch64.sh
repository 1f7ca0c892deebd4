#!/bin/sh
# SPDX-License-Identifier: MIT
# Cross-compiles the fiber probe for aarch64 and runs it under qemu.
# usage: fiber_aarch64.sh SOURCE_ROOT BUILD_DIR; exits with 77 (skipped) where that cannot be done.
set -eu

source=$1
probe=$2/fiber_probe_aarch64
cc=aarch64-linux-gnu-gcc
qemu=$(command -v qemu-aarch64 || command -v qemu-aarch64-static || true)

if ! command -v $cc >/dev/null || [ -z "$qemu" ]; then
	echo "skipped: $cc and qemu-aarch64 are needed"
	exit 77
fi
for flags in -O0 '-O2 -DFIBER_UCONTEXT' '-O2 -mbranch-protection=standard' -O2; do
	# shellcheck disable=SC2086
	$cc $flags -std=gnu17 -D_GNU_SOURCE -Wall -Wextra -Werror -frounding-math -static -I"$source/src" \
		"$source/tests/world/fiber_probe.c" "$source/src/world/fiber.c" \
		"$source/src/world/switch.S" -o "$probe" -lm -pthread
	"$qemu" "$probe"
done
