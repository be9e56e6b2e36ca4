// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

/* A C99 program over slash_qdma.h: every call once, and what must be refused. */
#include <doorbell/qdma/slash_qdma.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int failures = 0;

#define CHECK(condition)                                                                               \
  do {                                                                                                 \
    if (!(condition)) {                                                                                \
      printf("line %d: %s (errno %d: %s)\n", __LINE__, #condition, errno, doorbell_qdma_last_error()); \
      ++failures;                                                                                      \
    }                                                                                                  \
  } while (0)

#define DDR 0x60000000000ULL
#define BYTES (1u << 20)

int main(void) {
  struct slash_qdma* dev;
  struct slash_qdma_info info;
  struct slash_qdma_buffer out = SLASH_QDMA_BUFFER_NONE, in = SLASH_QDMA_BUFFER_NONE, zeros;
  struct slash_qdma_subxfer xfers[2];
  struct doorbell_qdma_result results[4];
  struct doorbell_qdma_completion done;
  uint32_t qids[2], i;
  uint64_t id = 0;
  size_t count = 0;
  int fd;

  CHECK(doorbell_qdma_version() == DOORBELL_QDMA_VERSION);
  CHECK(slash_qdma_open("modle") == NULL && errno == EINVAL);
  CHECK(strstr(doorbell_qdma_last_error(), "no back end") != NULL);
  CHECK(slash_qdma_open("/dev/slash_qdma_ctl_none") == NULL && errno == ENOENT);
  CHECK(slash_qdma_open(NULL) == NULL && errno == EFAULT);

  dev = slash_qdma_open("model");
  if (dev == NULL) {
    printf("no model: %s\n", doorbell_qdma_last_error());
    return 1;
  }
  CHECK(slash_qdma_info_read(dev, &info) == 0 && info.size == 52);
  for (i = 0; i < 2; ++i) {
    struct slash_qdma_qpair_add add;
    memset(&add, 0, sizeof add);
    add.size = sizeof add;
    add.dir_mask = SLASH_QDMA_H2C | SLASH_QDMA_C2H;
    add.mm_channel = i + 1;
    CHECK(slash_qdma_qpair_add(dev, &add) == 0);
    qids[i] = add.qid;
    CHECK(slash_qdma_qpair_start(dev, qids[i]) == 0);
  }
  CHECK(slash_qdma_qpair_start(dev, qids[0]) == -1 && errno == EINVAL);
  fd = slash_qdma_qpair_get_fd_multi(dev, qids, 2, 0);
  CHECK(fd >= 0);

  CHECK(slash_qdma_buffer_create(dev, BYTES, &out) == 0);
  CHECK(slash_qdma_qpair_buffer_create(fd, BYTES, &in) == 0);
  for (i = 0; i < BYTES; ++i) ((unsigned char*)out.addr)[i] = (unsigned char)(i * 13 >> 5);

  CHECK(slash_qdma_qpair_transfer(fd, out.fd, 0, DDR, BYTES, SLASH_QDMA_H2C) == BYTES);
  memset(xfers, 0, sizeof xfers);
  for (i = 0; i < 2; ++i) {
    xfers[i].qpair_index = i;
    xfers[i].direction = SLASH_QDMA_C2H;
    xfers[i].buf_fd = in.fd;
    xfers[i].buf_offset = (uint64_t)i * (BYTES / 2);
    xfers[i].dev_addr = DDR + xfers[i].buf_offset;
    xfers[i].length = BYTES / 2;
  }
  CHECK(slash_qdma_qpair_transfer_batch(fd, xfers, 2) == BYTES);
  CHECK(memcmp(in.addr, out.addr, BYTES) == 0);
  CHECK(slash_qdma_qpair_transfer_batch(fd, xfers, 3) == -1 && errno == EINVAL);
  CHECK(slash_qdma_qpair_transfer(fd, out.fd, 0, DDR, 0, SLASH_QDMA_H2C) == -1 && errno == EINVAL);
  CHECK(slash_qdma_qpair_transfer(fd + 1000, out.fd, 0, DDR, 1, SLASH_QDMA_H2C) == -1 && errno == EBADF);

  memset(in.addr, 0, BYTES);
  CHECK(doorbell_qdma_transfer(fd, &in, 0, DDR, BYTES, SLASH_QDMA_C2H, 5000000000u, results, 4, &count) ==
        BYTES);
  CHECK(count == 2 && results[0].known == 1 && results[0].bytes + results[1].bytes == BYTES);
  CHECK(memcmp(in.addr, out.addr, BYTES) == 0);
  CHECK(doorbell_qdma_set_policy(fd, DOORBELL_QDMA_CHANNEL1) == 0);
  CHECK(doorbell_qdma_transfer(fd, &in, 0, DDR, BYTES, SLASH_QDMA_C2H, 0, NULL, 0, &count) == BYTES &&
        count == 1);
  CHECK(doorbell_qdma_transfer(fd, &in, 0, 0x30000000000ULL, 1, SLASH_QDMA_C2H, 0, NULL, 0, NULL) == -1 &&
        errno == EFAULT);
  CHECK(doorbell_qdma_transfer_batch(fd, xfers, 2, 5000000000u, results) == BYTES &&
        results[1].bytes == BYTES / 2);

  /* A call that is refused as a whole says so in every result. */
  memset(results, 0x5a, sizeof results);
  CHECK(doorbell_qdma_transfer_batch(fd, xfers, 3, 0, results) == -1 && errno == EINVAL);
  for (i = 0; i < 3; ++i) CHECK(results[i].error == EINVAL && results[i].known == 0 && results[i].bytes == 0);
  memset(results, 0x5a, sizeof results);
  CHECK(doorbell_qdma_transfer_batch(fd + 1000, xfers, 2, 0, results) == -1 && errno == EBADF);
  CHECK(results[0].error == EBADF && results[1].error == EBADF && results[1].known == 0);

  CHECK(doorbell_qdma_submit(fd, &out, 0, DDR, BYTES, SLASH_QDMA_H2C, 0, 42, &id) == 0);
  CHECK(doorbell_qdma_complete(fd, &done, 1, 30000000000u) == 1);
  CHECK(done.id == id && done.user == 42 && done.error == 0 && done.bytes == BYTES);
  CHECK(doorbell_qdma_complete(fd, &done, 1, 0) == 0);
  CHECK(doorbell_qdma_cancel(fd, id) == 0);

  /* A buffer that is none, or was never made, closes nothing. */
  memset(&zeros, 0, sizeof zeros);
  CHECK(slash_qdma_buffer_destroy(&zeros) == 0);
  CHECK(write(1, "", 0) == 0 && dup(0) >= 0);
  CHECK(slash_qdma_buffer_destroy(&out) == 0 && out.fd == -1);
  CHECK(slash_qdma_buffer_destroy(&out) == 0);

  CHECK(slash_qdma_qpair_stop(dev, qids[0]) == 0);
  CHECK(slash_qdma_qpair_transfer(fd, in.fd, 0, DDR, 1, SLASH_QDMA_C2H) == -1 && errno == EINVAL);
  CHECK(slash_qdma_qpair_del(dev, qids[0]) == 0);
  CHECK(slash_qdma_qpair_transfer(fd, in.fd, 0, DDR, 1, SLASH_QDMA_C2H) == -1 && errno == ESTALE);
  CHECK(slash_qdma_qpair_del(dev, qids[0]) == -1 && errno == ESTALE);
  CHECK(slash_qdma_qpair_get_fd(dev, qids[0], 0) == -1 && errno == ESTALE);
  CHECK(doorbell_qdma_qpair_close(fd) == 0);
  CHECK(slash_qdma_qpair_transfer(fd, in.fd, 0, DDR, 1, SLASH_QDMA_C2H) == -1 && errno == EBADF);
  CHECK(slash_qdma_buffer_destroy(&in) == 0);
  CHECK(slash_qdma_close(dev) == 0);
  if (failures == 0) printf("every call as it should be\n");
  return failures == 0 ? 0 : 1;
}
