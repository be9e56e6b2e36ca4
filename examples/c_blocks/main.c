// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

/* Writes 8 MiB to an NVMe controller and reads them back, from C: no C++ compiler or library is needed to build it.
 * Exit code 2 if they differ. */
#include <doorbell/doorbell.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed(void) {
  fprintf(stderr, "%s\n%s\n", doorbell_last_error(), doorbell_last_hint());
  return doorbell_last_code();
}

int main(int argc, char** argv) {
  const char* controller = argc > 1 ? argv[1] : "model";
  struct doorbell_nvme* nvme = doorbell_nvme_open(controller, NULL);
  if (nvme == NULL) return failed();
  const uint64_t bytes = 8u << 20, blocks = bytes / doorbell_nvme_block_bytes(nvme);
  unsigned char* out = doorbell_nvme_allocate(nvme, bytes);
  unsigned char* in = doorbell_nvme_allocate(nvme, bytes);
  if (out == NULL || in == NULL) return failed();
  for (uint64_t i = 0; i < bytes; ++i) out[i] = (unsigned char)(i * 2654435761u >> 13);
  if (doorbell_nvme_write(nvme, 0, blocks, out) != 0 || doorbell_nvme_read(nvme, 0, blocks, in) != 0) return failed();
  const int same = memcmp(out, in, bytes) == 0;
  printf("%s: %llu blocks written and read back: %s\n", doorbell_nvme_name(nvme), (unsigned long long)blocks,
         same ? "the same" : "THEY DIFFER");
  doorbell_nvme_close(nvme);
  return same ? EXIT_SUCCESS : 2;
}
