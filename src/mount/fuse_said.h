/* SPDX-License-Identifier: MIT */
/* Why libfuse would not mount, in its words. */
#ifndef SLUICE_MOUNT_FUSE_SAID_H
#define SLUICE_MOUNT_FUSE_SAID_H

/* From now on what libfuse has to say goes here, instead of to the terminal. */
void fuse_said_listen(void);
/* The first thing it has said since, or that it says nothing. */
const char *fuse_said_why(void);

#endif
