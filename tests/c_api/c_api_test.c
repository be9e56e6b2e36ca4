// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

/* doorbell.h as a C99 program uses it, linked by the C compiler with libdoorbell.so alone. Prints the line of
 * each check that fails; exit code 0 or 1. */
#include <doorbell/doorbell.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

#define CHECK(condition)                                                                             \
  do {                                                                                               \
    if (!(condition)) {                                                                              \
      printf("%s:%d: %s (last error: %s)\n", __FILE__, __LINE__, #condition, doorbell_last_error()); \
      ++failures;                                                                                    \
    }                                                                                                \
  } while (0)

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static void runs(void) {
  const struct doorbell_option options[] = {{"controller", "model"}, {"write_io", "300"}, {"read-io", "200"}};
  struct doorbell_result* r = doorbell_run("nvme", options, COUNT(options), NULL, NULL);
  CHECK(r != NULL);
  CHECK(doorbell_result_exit_code(r) == 0);
  CHECK(strcmp(doorbell_result_verdict(r), "OK") == 0);
  CHECK(strstr(doorbell_result_json(r), "doorbell.results/1") != NULL);
  CHECK(doorbell_result_cells(r) == 1);
  struct doorbell_figures f = {.size = sizeof f};
  CHECK(doorbell_result_figures(r, 0, &f) == 0);
  CHECK(f.operations == 500 && f.bytes == 500 * 512 && f.checked == 200 && f.failed == 0);
  CHECK(f.operations_per_s > 0 && f.p50_ns > 0 && !isnan(f.p50_ns));
  /* An older program, whose structure ends earlier. */
  f.checked = 77;
  f.size = offsetof(struct doorbell_figures, checked);
  CHECK(doorbell_result_figures(r, 0, &f) == 0 && f.checked == 77);
  CHECK(strcmp(doorbell_result_parameter(r, 0, "read_io"), "200") == 0);
  CHECK(doorbell_result_parameter(r, 0, "no such") == NULL);
  CHECK(doorbell_result_figures(r, 1, &f) == -1);
  doorbell_result_free(r);
  doorbell_result_free(NULL);
}

static void wrong_data_has_a_result(void) {
  const struct doorbell_option options[] = {
      {"write-io", "400"}, {"read-io", "400"}, {"fault", "corrupt=0.5"}};
  struct doorbell_result* r = doorbell_run("nvme", options, COUNT(options), NULL, NULL);
  CHECK(doorbell_result_exit_code(r) == 2);
  CHECK(strncmp(doorbell_result_verdict(r), "FAILED: ", 8) == 0);
  doorbell_result_free(r);
}

static int stop_at_once(void* user, double share, const char* phase, uint64_t operations) {
  (void)share;
  (void)phase;
  ++*(int*)user;
  return operations > 0;
}

static void ends_early(void) {
  const struct doorbell_option options[] = {
      {"op", "write"}, {"duration", "86400"}, {"repeats", "1"}, {"warmup", "0"}};
  int calls = 0;
  struct doorbell_result* r = doorbell_run("nvme", options, COUNT(options), stop_at_once, &calls);
  CHECK(doorbell_result_exit_code(r) == 130);
  CHECK(calls > 0);
  doorbell_result_free(r);
}

static void errors(void) {
  CHECK(doorbell_run("nvm", NULL, 0, NULL, NULL) == NULL);
  CHECK(strstr(doorbell_last_error(), "'nvm' is not one of nvme") != NULL);
  CHECK(doorbell_last_code() == 1);
  const struct doorbell_option wrong = {"batch-siz", "4"};
  CHECK(doorbell_run("nvme", &wrong, 1, NULL, NULL) == NULL);
  CHECK(strstr(doorbell_last_error(), "did you mean '--batch-size'?") != NULL);
  CHECK(*doorbell_last_hint() != '\0');
  const struct doorbell_option absent = {"controller", "0000:ff:1f.7"};
  CHECK(doorbell_run("nvme", &absent, 1, NULL, NULL) == NULL);
  CHECK(doorbell_last_code() == 77);
  CHECK(doorbell_run(NULL, NULL, 0, NULL, NULL) == NULL);
  CHECK(doorbell_run("nvme", NULL, 1, NULL, NULL) == NULL);
  CHECK(doorbell_result_exit_code(NULL) == -1 && doorbell_result_json(NULL) == NULL &&
        doorbell_result_cells(NULL) == 0);
}

static void blocks(void) {
  struct doorbell_nvme_options o = {.size = sizeof o, .in_flight = 8, .io_bytes = 4096};
  struct doorbell_nvme* n = doorbell_nvme_open("model:capacity=32Mi", &o);
  CHECK(n != NULL);
  const uint32_t block = doorbell_nvme_block_bytes(n);
  CHECK(block == 512 && doorbell_nvme_blocks(n) == 65536 && strncmp(doorbell_nvme_name(n), "model", 5) == 0);
  const size_t bytes = 1000 * (size_t)block;
  unsigned char *out = malloc(bytes), *mapped = doorbell_nvme_allocate(n, bytes);
  CHECK(out != NULL && mapped != NULL);
  for (size_t i = 0; i < bytes; ++i) out[i] = (unsigned char)(i * 7 + i / 512);
  CHECK(doorbell_nvme_write(n, 30, 1000, out) == 0);
  CHECK(doorbell_nvme_read(n, 30, 1000, mapped) == 0);
  CHECK(memcmp(out, mapped, bytes) == 0);
  /* A part of the memory, from inside it. */
  CHECK(doorbell_nvme_read(n, 530, 500, mapped + 4) == 0);
  CHECK(memcmp(out + 500 * (size_t)block, mapped + 4, bytes / 2) == 0);
  memset(out, 0, bytes);
  CHECK(doorbell_nvme_read(n, 531, 10, out) == 0);
  CHECK(memcmp(out, mapped + 4 + block, 10 * (size_t)block) == 0);
  CHECK(doorbell_nvme_flush(n) == 0);
  CHECK(doorbell_nvme_read(n, 65536, 1, out) == -1);
  CHECK(strstr(doorbell_last_error(), "the namespace has 65536 blocks") != NULL);
  CHECK(doorbell_nvme_read(n, ~(uint64_t)0, 2, mapped) == -1);
  CHECK(doorbell_nvme_read(n, 0, ~(uint64_t)0 / 256, mapped) == -1);
  CHECK(doorbell_nvme_read(n, 0, 1, NULL) == -1 && doorbell_nvme_read(NULL, 0, 1, out) == -1);
  CHECK(doorbell_nvme_allocate(n, 0) == NULL);
  doorbell_nvme_free(n, mapped);
  (void)doorbell_nvme_allocate(n, 4096); /* goes with the namespace */
  doorbell_nvme_close(n);
  doorbell_nvme_close(NULL);
  free(out);
  CHECK(doorbell_nvme_open("no such", NULL) == NULL);
  o.size = 0;
  CHECK(doorbell_nvme_open("model", &o) == NULL);
  CHECK(strstr(doorbell_last_error(), "its size is not set") != NULL);
}

static void card(void) {
  struct slash_qdma* dev = slash_qdma_open("model");
  struct slash_qdma_qpair_add add = {.size = sizeof add, .dir_mask = SLASH_QDMA_H2C | SLASH_QDMA_C2H};
  CHECK(dev != NULL && slash_qdma_qpair_add(dev, &add) == 0 && slash_qdma_qpair_start(dev, add.qid) == 0);
  const int fd = slash_qdma_qpair_get_fd(dev, add.qid, 0);
  struct slash_qdma_buffer buffer = SLASH_QDMA_BUFFER_NONE;
  CHECK(fd >= 0 && slash_qdma_buffer_create(dev, 1 << 16, &buffer) == 0);
  memset(buffer.addr, 5, 1 << 16);
  CHECK(doorbell_qdma_transfer(fd, &buffer, 0, DOORBELL_QDMA_DDR, 1 << 16, SLASH_QDMA_H2C, 0, NULL, 0,
                               NULL) == 1 << 16);
  memset(buffer.addr, 6, 1 << 16);
  CHECK(doorbell_qdma_transfer(fd, &buffer, 0, DOORBELL_QDMA_DDR, 1 << 16, SLASH_QDMA_C2H, 0, NULL, 0,
                               NULL) == 1 << 16);
  CHECK(((unsigned char*)buffer.addr)[12345] == 5);
  CHECK(doorbell_qdma_transfer(fd, &buffer, 0, 0x1000, 4096, SLASH_QDMA_H2C, 0, NULL, 0, NULL) == -1);
  CHECK(strstr(doorbell_qdma_last_error(), "0x1000, 4096 bytes, is not in DDR or HBM") != NULL);
  CHECK(slash_qdma_buffer_destroy(&buffer) == 0 && doorbell_qdma_qpair_close(fd) == 0 &&
        slash_qdma_close(dev) == 0);
}

int main(void) {
  CHECK(strcmp(doorbell_version(), DOORBELL_VERSION) == 0);
  runs();
  wrong_data_has_a_result();
  ends_early();
  errors();
  blocks();
  card();
  printf(failures == 0 ? "all good\n" : "%d checks failed\n", failures);
  return failures == 0 ? 0 : 1;
}
