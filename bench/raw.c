// The machine's limit: one TCP connection, two processes, and no engine.
//   raw owner FILE
//   raw consumer FILE MYFILE PORT SIZES      (SIZES: 4096,65536,...)
//   raw check FILE MYFILE PORT
// READ: ask, then receive. WRITE: send, then wait for one byte that says that all is in place.
// Environment: SPIN (poll instead of sleeping in the call), SECONDS_EACH (0.6).
#include "bench.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

struct Head {
  uint32_t write;
  uint32_t batch;
  uint64_t size;
};

static int connection;
static int wait_flag; // MSG_DONTWAIT with SPIN
static int serving;   // the owner, whose peer ends when it has had enough
static char* memory;

// A whole transfer in one direction, of `count` pieces.
static void move_all(int out, struct iovec* pieces, size_t count) {
  size_t first = 0;
  while (first < count) {
    struct msghdr message = {.msg_iov = pieces + first, .msg_iovlen = count - first};
    ssize_t moved = out ? sendmsg(connection, &message, MSG_NOSIGNAL | wait_flag)
                        : recvmsg(connection, &message, wait_flag);
    if (moved < 0 && errno == EAGAIN) {
      continue;
    }
    if (moved <= 0) {
      exit(moved == 0 && serving ? 0 : 1);
    }
    size_t left = (size_t)moved;
    while (first < count && left >= pieces[first].iov_len) {
      left -= pieces[first++].iov_len;
    }
    if (first < count) {
      pieces[first].iov_base = (char*)pieces[first].iov_base + left;
      pieces[first].iov_len -= left;
    }
  }
}

static void move_bytes(int out, void* bytes, size_t size) {
  struct iovec piece = {bytes, size};
  move_all(out, &piece, 1);
}

// The operation's bytes, behind `head` where one is given.
static void move_batch(int out, struct Head* head, size_t size, size_t batch) {
  struct iovec pieces[BATCH_OPERATIONS + 1];
  size_t count = 0;
  if (head != NULL) {
    pieces[count++] = (struct iovec){head, sizeof *head};
  }
  for (size_t i = 0; i < batch; ++i) {
    pieces[count++] = (struct iovec){memory + i * STEP_BYTES, size};
  }
  move_all(out, pieces, count);
}

static void one(int write, size_t size, size_t batch) {
  struct Head head = {(uint32_t)write, (uint32_t)batch, size};
  if (write) {
    char done = 0;
    move_batch(1, &head, size, batch);
    move_bytes(0, &done, 1);
  } else {
    move_bytes(1, &head, sizeof head);
    move_batch(0, NULL, size, batch);
  }
}

static void serve(void) { // one connection, until it ends
  for (;;) {
    struct Head head;
    move_bytes(0, &head, sizeof head);
    CHECK(head.batch >= 1 && head.batch <= BATCH_OPERATIONS && head.size <= REGION_BYTES);
    move_batch(!head.write, NULL, head.size, head.batch);
    if (head.write) {
      char done = 1;
      move_bytes(1, &done, 1);
    }
  }
}

static void no_delay(void) {
  const int on = 1;
  CHECK(setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0);
}

static struct sockaddr_in loopback(int port) {
  return (struct sockaddr_in){.sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void own(const char* path) {
  memory = map_region(path, 1);
  struct sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(listener >= 0);
  CHECK(bind(listener, (struct sockaddr*)&address, length) == 0 && listen(listener, 1) == 0);
  CHECK(getsockname(listener, (struct sockaddr*)&address, &length) == 0);
  printf("READY %d\n", ntohs(address.sin_port));
  fflush(stdout);
  connection = accept(listener, NULL, NULL);
  CHECK(connection >= 0);
  no_delay();
  serving = 1;
  serve();
}

int main(int argc, char** argv) {
  wait_flag = getenv("SPIN") != NULL ? MSG_DONTWAIT : 0;
  if (argc == 3 && strcmp(argv[1], "owner") == 0) {
    own(argv[2]);
  }
  if (argc < 5) {
    return 2;
  }
  char* theirs = map_region(argv[2], 0);
  memory = map_region(argv[3], 2);
  const struct sockaddr_in address = loopback(atoi(argv[4]));
  connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(connection >= 0);
  CHECK(connect(connection, (const struct sockaddr*)&address, sizeof address) == 0);
  no_delay();
  if (strcmp(argv[1], "check") == 0) {
    return check_visibility("raw", one, memory, theirs);
  }
  if (argc < 6) {
    return 2;
  }
  all_rows(argv[5], one);
  return 0;
}
