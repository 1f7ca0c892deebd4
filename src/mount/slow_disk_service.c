// SPDX-License-Identifier: MIT
/*
 * A request is stamped when it arrives, and the model says there and then when it will be
 * answered; the bytes are moved meanwhile, and the rest of the time is slept. So whatever
 * moving them costs is part of the time the model gives, not on top of it, and as many
 * requests as there are threads can wait at once: a queue. Should the backing be slower than
 * the disk it plays, the answer is late, and the next ones are not held up by that.
 *
 * A flush is not an I/O of the model: what was answered is safe. The backing is synced all
 * the same, so that this is true. Neither is a discard.
 */
#include "mount/slow_disk_service.h"
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

int service_open(struct slow_disk_service *s, const struct slow_disk_config *c, struct err *e)
{
	*s = (struct slow_disk_service){ .config = *c };
	spin_init(&s->lock, RANK_DEVICE);
	rate_init(&s->rate, c->iops, c->bytes_per_s, c->latency_ns);
	return backing_open(&s->backing, c->backing, c->size_bytes, e);
}

void service_close(struct slow_disk_service *s)
{
	backing_close(&s->backing);
}

/* A read or write arrives: when it will be answered. */
static u64 arrive(struct slow_disk_service *s, size_t length, u64 *count, u64 *bytes)
{
	u64 now, answer;

	spin_lock(&s->lock);
	now = world_now();
	answer = rate_serve(&s->rate, now, (u32)length);
	++*count;
	*bytes += length;
	if (!s->stats.in_flight++)
		s->busy_since_ns = now;
	s->stats.in_flight_max = max_u64(s->stats.in_flight_max, s->stats.in_flight);
	spin_unlock(&s->lock);
	return answer;
}

static int answer_at(struct slow_disk_service *s, u64 when, int error)
{
	world_sleep_until(when);
	spin_lock(&s->lock);
	if (!--s->stats.in_flight)
		s->stats.busy_ns += world_now() - s->busy_since_ns;
	s->stats.errors += error != 0;
	spin_unlock(&s->lock);
	return error;
}

int service_read(struct slow_disk_service *s, void *buf, size_t length, u64 offset)
{
	u64 answer = arrive(s, length, &s->stats.reads, &s->stats.read_bytes);

	return answer_at(s, answer, backing_read(&s->backing, buf, length, offset));
}

int service_write(struct slow_disk_service *s, const void *buf, size_t length, u64 offset)
{
	u64 answer = arrive(s, length, &s->stats.writes, &s->stats.write_bytes);

	return answer_at(s, answer, backing_write(&s->backing, buf, length, offset));
}

int service_flush(struct slow_disk_service *s)
{
	int error = backing_sync(&s->backing);

	spin_lock(&s->lock);
	s->stats.flushes++;
	s->stats.errors += error != 0;
	spin_unlock(&s->lock);
	return error;
}

int service_discard(struct slow_disk_service *s, u64 offset, u64 length)
{
	int error = backing_punch(&s->backing, offset, length);

	spin_lock(&s->lock);
	s->stats.discards++;
	s->stats.discard_bytes += length;
	s->stats.errors += error != 0;
	spin_unlock(&s->lock);
	return error;
}

void service_stats(struct slow_disk_service *s, struct slow_disk_stats *out)
{
	spin_lock(&s->lock);
	*out = s->stats;
	if (out->in_flight)
		out->busy_ns += world_now() - s->busy_since_ns;
	spin_unlock(&s->lock);
}

char *service_stats_json(struct slow_disk_service *s)
{
	const struct slow_disk_config *c = &s->config;
	struct slow_disk_stats t;
	char *json = NULL, *text = NULL;
	json_t *root;

	service_stats(s, &t);
	root = json_pack(
		"{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f}",
		"reads", (json_int_t)t.reads, "writes", (json_int_t)t.writes, "flushes",
		(json_int_t)t.flushes, "discards", (json_int_t)t.discards, "read_bytes",
		(json_int_t)t.read_bytes, "write_bytes", (json_int_t)t.write_bytes, "discard_bytes",
		(json_int_t)t.discard_bytes, "errors", (json_int_t)t.errors, "busy_ns",
		(json_int_t)t.busy_ns, "in_flight", (json_int_t)t.in_flight, "in_flight_max",
		(json_int_t)t.in_flight_max, "size_bytes", (json_int_t)s->backing.size_bytes,
		"sector_bytes", (json_int_t)s->backing.sector_bytes, "iops", c->iops, "bytes_per_s",
		c->bytes_per_s, "latency_us", (double)c->latency_ns / NSEC_PER_USEC);
	if (root)
		json = json_dumps(root, JSON_INDENT(2));
	json_decref(root);
	if (json && asprintf(&text, "%s\n", json) < 0)
		text = NULL;
	free(json);
	return text;
}
