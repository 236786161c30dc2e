/*
 * The echo worker, as cheap as a worker can be: one blocking read and one write per chunk. It knows the layout of bench/line.mjs: all
 * lines are of one length, and an answer is its request with one stretch written over.
 *
 * Usage: echo FOLDER LINE_BYTES PATCH_AT PATCH   (FOLDER only tells processes apart)
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROOM (1 << 20)

static char bytes[ROOM];

static int write_all(const char *from, size_t length) {
  while (length > 0) {
    ssize_t written = write(STDOUT_FILENO, from, length);
    if (written <= 0) return -1;
    from += written;
    length -= (size_t)written;
  }
  return 0;
}

int main(int count, char **arguments) {
  if (count != 5) return 2;
  size_t line = strtoul(arguments[2], NULL, 10);
  size_t at = strtoul(arguments[3], NULL, 10);
  const char *patch = arguments[4];
  size_t length = strlen(patch);
  size_t held = 0;
  for (;;) {
    ssize_t got = read(STDIN_FILENO, bytes + held, ROOM - held);
    if (got <= 0) return 0;
    held += (size_t)got;
    size_t whole = held / line * line;
    for (size_t start = 0; start < whole; start += line) memcpy(bytes + start + at, patch, length);
    if (write_all(bytes, whole) != 0) return 0;
    held -= whole;
    memmove(bytes, bytes + whole, held);
  }
}
