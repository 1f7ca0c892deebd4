#!/bin/sh
# SPDX-License-Identifier: MIT
# one_object.sh COMPILER... ARCHIVE OUTPUT
# Joins the objects of an archive to one, makes all its hidden symbols local, and puts it into an
# archive of its own.
set -eu
compiler=
while [ $# -gt 2 ]; do
	compiler="$compiler $1"
	shift
done
object="$2.p.o"
rm -f "$2"
# shellcheck disable=SC2086 # a list of words
$compiler -r -nostdlib -Wl,--whole-archive "$1" -o "$object"
objcopy --localize-hidden "$object"
ar rcs "$2" "$object"
rm -f "$object"
