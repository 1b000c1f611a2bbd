// What raw.c and wherry_peer.cpp have in common, for C: the region, the timed loop, and the lines
// that bench/run reads.
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define REGION_BYTES (256UL << 20)
#define BATCH_OPERATIONS 1000 // scattered operations a batch,
#define SMALL_BYTES 4096UL    // bytes of each,
#define STEP_BYTES 8192UL     // and the distance between them
#define SAMPLES_MAX (1 << 18)
#define CHECK(x)                                                                                   \
  do {                                                                                             \
    if (!(x)) {                                                                                    \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #x, strerror(errno));                 \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

static inline double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Memory that the other process maps too, so that `check` sees what really arrived.
static inline char* map_region(const char* path, int fill) {
  const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  CHECK(file >= 0 && ftruncate(file, (off_t)REGION_BYTES) == 0);
  char* region =
      mmap(NULL, REGION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
  CHECK(region != MAP_FAILED);
  close(file);
  if (fill != 0) {
    memset(region, fill, REGION_BYTES); // untouched pages would all be the one zero page
  }
  return region;
}

static inline int by_value(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

// One operation, or a batch of them; returns when it is done.
typedef void Operation(int write, size_t size, size_t batch);

// BEGIN, then ROW name bytes GB/s p50_us count.
static inline void timed(const char* name, Operation* one, int write, size_t size, size_t batch) {
  static double samples[SAMPLES_MAX];
  const char* setting = getenv("SECONDS_EACH");
  const double seconds = setting != NULL ? atof(setting) : 0.6;
  for (int i = 0; i < 3; ++i) {
    one(write, size, batch);
  }
  printf("BEGIN\n");
  fflush(stdout);
  size_t count = 0;
  const double start = seconds_now();
  double last = start;
  while ((last - start < seconds || count < 5) && count < SAMPLES_MAX) {
    one(write, size, batch);
    const double now = seconds_now();
    samples[count++] = now - last;
    last = now;
  }
  qsort(samples, count, sizeof samples[0], by_value);
  const double bytes = (double)(size * batch);
  printf("ROW %s %zu %.9f %.3f %zu\n", name, size * batch,
         bytes * (double)count / (last - start) / 1e9, samples[count / 2] * 1e6, count);
  fflush(stdout);
}

// `sizes`: 4096,65536,...
static inline void all_rows(char* sizes, Operation* one) {
  for (char* word = strtok(sizes, ","); word != NULL; word = strtok(NULL, ",")) {
    const size_t size = strtoul(word, NULL, 10);
    timed("READ", one, 0, size, 1);
    timed("WRITE", one, 1, size, 1);
  }
  timed("READ x1000", one, 0, SMALL_BYTES, BATCH_OPERATIONS);
  timed("WRITE x1000", one, 1, SMALL_BYTES, BATCH_OPERATIONS);
}

// After each WRITE: is every page's last byte in the owner's memory? After each READ: in ours?
static inline int check_visibility(const char* peer, Operation* one, volatile char* mine,
                                   volatile char* theirs) {
  static const size_t sizes[] = {8, 4096, 65536, 1UL << 20, 16UL << 20, 64UL << 20};
  int late_in_all = 0;
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; ++s) {
    for (int write = 0; write < 2; ++write) {
      const size_t size = sizes[s];
      const size_t first = (size - 1) % 4096;
      const int tries = size > 1UL << 20 ? 20 : 300;
      int late = 0;
      for (int i = 0; i < tries; ++i) {
        volatile char* from = write ? mine : theirs;
        volatile char* to = write ? theirs : mine;
        const char mark = (char)(i * 7 + (int)s * 31 + write + 1);
        for (size_t at = first; at < size; at += 4096) {
          from[at] = mark;
          to[at] = (char)~mark;
        }
        one(write, size, 1);
        int missing = 0;
        for (size_t at = first; at < size; at += 4096) {
          missing |= to[at] != mark;
        }
        late += missing;
      }
      late_in_all += late;
      printf("CHECK %s %s %zu late %d of %d\n", peer, write ? "WRITE" : "READ", size, late, tries);
    }
  }
  fflush(stdout);
  return late_in_all != 0;
}
