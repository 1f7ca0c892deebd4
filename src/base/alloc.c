// SPDX-License-Identifier: MIT
/* Who refuses memory: nobody, unless a test sets it. */
#include "base/alloc.h"

_Thread_local bool (*alloc_refuses)(void);
_Thread_local bool (*alloc_refuses_frames)(void);
