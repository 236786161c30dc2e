/*
 * The load generator, as cheap as one can be. Every client keeps so many requests in flight and checks every answer off by its id; all
 * lines are of one length (bench/line.mjs), so nothing is parsed. It says "begin" when the warm-up is over, and its figures at the end.
 *
 * Usage: load ADDRESS CLIENTS IN_FLIGHT TEMPLATE ID_AT FIRST_ID SESSION_AT WARM_MS ROUND_MS [GREETING]
 * ADDRESS is a path or a port of loopback; TEMPLATE is a file that holds one request, whose id and session are written over in each;
 * GREETING is a file with one line that every client sends first, and that is answered with a line.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <netinet/tcp.h>
#include <time.h>
#include <unistd.h>

#define ID_DIGITS 10
#define SESSION_DIGITS 8
/* Plain clients name sessions: so many each. */
#define SESSIONS 4
#define PATIENCE_MS 30000
#define MAX_SAMPLES (1 << 20)
#define EVENTS 256

struct client {
  int descriptor;
  int index;
  char *out;
  size_t out_from, out_to;
  char *in;
  size_t held;
  double *sent_at;
  int outstanding;
  int wants_room;
};

static size_t line_bytes, id_at, session_at;
static char *line_template;
static long first_id;
static int in_flight, poller;
static double *samples;
static long sample_count, seen_count, answered;
static int is_measured, is_over;

static double now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static void fail(const char *why) {
  fprintf(stderr, "%s: %s\n", why, strerror(errno));
  exit(1);
}

static char *read_line(const char *path, size_t *length) {
  FILE *file = fopen(path, "r");
  if (file == NULL) fail(path);
  fseek(file, 0, SEEK_END);
  *length = (size_t)ftell(file);
  rewind(file);
  char *line = malloc(*length);
  if (fread(line, 1, *length, file) != *length) fail(path);
  fclose(file);
  return line;
}

/* The answer must be a result: whoever is refused would measure refusals. */
static void greet(int descriptor, const char *path) {
  char answer[4096];
  size_t length, held = 0;
  char *line = read_line(path, &length);
  if (write(descriptor, line, length) != (ssize_t)length) fail("greeting");
  while (held == 0 || answer[held - 1] != '\n') {
    ssize_t got = read(descriptor, answer + held, sizeof answer - 1 - held);
    if (got <= 0) fail("the greeting was not answered");
    held += (size_t)got;
  }
  answer[held] = '\0';
  if (strstr(answer, "\"result\"") == NULL) fail(answer);
  free(line);
}

static int connect_to(const char *address) {
  int descriptor;
  if (strchr(address, '/') != NULL) {
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    strncpy(path.sun_path, address, sizeof path.sun_path - 1);
    descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(descriptor, (struct sockaddr *)&path, sizeof path) != 0) fail("connect");
  } else {
    struct sockaddr_in port = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(address))};
    int yes = 1;
    port.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    descriptor = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(descriptor, (struct sockaddr *)&port, sizeof port) != 0) fail("connect");
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  }
  return descriptor;
}

static void watch(struct client *client, int operation) {
  struct epoll_event event = {.events = EPOLLIN | (client->wants_room ? EPOLLOUT : 0), .data.ptr = client};
  if (epoll_ctl(poller, operation, client->descriptor, &event) != 0) fail("epoll_ctl");
}

static void write_number(char *at, int digits, long number) {
  for (int digit = digits - 1; digit >= 0; digit--, number /= 10) at[digit] = (char)('0' + number % 10);
}

/* The slot of a request is its place among those of its client that are in flight. */
static void queue_request(struct client *client, int slot, double at_us) {
  char *line = client->out + client->out_to;
  long id = first_id + (long)client->index * in_flight + slot;
  memcpy(line, line_template, line_bytes);
  write_number(line + id_at, ID_DIGITS, id);
  write_number(line + session_at, SESSION_DIGITS, (long)client->index * SESSIONS + slot % SESSIONS);
  client->out_to += line_bytes;
  client->sent_at[slot] = at_us;
  client->outstanding++;
}

static void flush_requests(struct client *client) {
  while (client->out_from < client->out_to) {
    ssize_t written = write(client->descriptor, client->out + client->out_from, client->out_to - client->out_from);
    if (written < 0 && errno != EAGAIN) fail("write");
    if (written < 0) break;
    client->out_from += (size_t)written;
  }
  int wants_room = client->out_from < client->out_to;
  if (!wants_room) client->out_from = client->out_to = 0;
  if (wants_room == client->wants_room) return;
  client->wants_room = wants_room;
  watch(client, EPOLL_CTL_MOD);
}

static void note(double took_us) {
  answered++;
  if (!is_measured) return;
  if (sample_count < MAX_SAMPLES) samples[sample_count++] = took_us;
  else samples[seen_count % MAX_SAMPLES] = took_us;
  seen_count++;
}

static void take_answers(struct client *client) {
  ssize_t got = read(client->descriptor, client->in + client->held, line_bytes * (size_t)in_flight - client->held);
  if (got < 0 && errno == EAGAIN) return;
  if (got <= 0) fail("the connection was closed");
  client->held += (size_t)got;
  double at_us = now_us();
  size_t start = 0;
  /* What is still to be written moves to the front: there is room for as many requests as may be in flight. */
  if (client->out_from > 0) {
    memmove(client->out, client->out + client->out_from, client->out_to - client->out_from);
    client->out_to -= client->out_from;
    client->out_from = 0;
  }
  for (; client->held - start >= line_bytes; start += line_bytes) {
    const char *line = client->in + start;
    if (line[line_bytes - 1] != '\n') fail("an answer of another length");
    long slot = strtol(line + id_at, NULL, 10) - first_id - (long)client->index * in_flight;
    if (slot < 0 || slot >= in_flight || client->sent_at[slot] == 0) fail("an answer that nobody waits for");
    note(at_us - client->sent_at[slot]);
    client->sent_at[slot] = 0;
    client->outstanding--;
    if (!is_over) queue_request(client, (int)slot, at_us);
  }
  client->held -= start;
  memmove(client->in, client->in + start, client->held);
}

static void turn(int timeout_ms) {
  struct epoll_event events[EVENTS];
  int count = epoll_wait(poller, events, EVENTS, timeout_ms);
  if (count == 0) fail("nothing was answered for a long time");
  for (int index = 0; index < count; index++) {
    struct client *client = events[index].data.ptr;
    if (events[index].events & EPOLLIN) take_answers(client);
    flush_requests(client);
  }
}

static void run_until(double end_us) {
  while (now_us() < end_us) turn(PATIENCE_MS);
}

static int compare_samples(const void *one, const void *other) {
  double difference = *(const double *)one - *(const double *)other;
  return (difference > 0) - (difference < 0);
}

int main(int count, char **arguments) {
  if (count != 10 && count != 11) return 2;
  int client_count = atoi(arguments[2]);
  in_flight = atoi(arguments[3]);
  line_template = read_line(arguments[4], &line_bytes);
  id_at = strtoul(arguments[5], NULL, 10);
  first_id = atol(arguments[6]);
  session_at = strtoul(arguments[7], NULL, 10);
  double warm_us = atof(arguments[8]) * 1e3, round_us = atof(arguments[9]) * 1e3;
  struct client *clients = calloc((size_t)client_count, sizeof *clients);
  samples = malloc(sizeof *samples * MAX_SAMPLES);
  poller = epoll_create1(0);
  for (int index = 0; index < client_count; index++) {
    struct client *client = &clients[index];
    client->descriptor = connect_to(arguments[1]);
    if (count == 11) greet(client->descriptor, arguments[10]);
    fcntl(client->descriptor, F_SETFL, O_NONBLOCK);
    client->index = index;
    client->out = malloc(line_bytes * (size_t)in_flight);
    client->in = malloc(line_bytes * (size_t)in_flight);
    client->sent_at = calloc((size_t)in_flight, sizeof *client->sent_at);
    watch(client, EPOLL_CTL_ADD);
  }
  for (int index = 0; index < client_count; index++) {
    for (int slot = 0; slot < in_flight; slot++) queue_request(&clients[index], slot, now_us());
    flush_requests(&clients[index]);
  }
  run_until(now_us() + warm_us);
  answered = 0;
  is_measured = 1;
  printf("begin\n");
  fflush(stdout);
  double begun_us = now_us();
  run_until(begun_us + round_us);
  double seconds = (now_us() - begun_us) / 1e6;
  long measured = answered;
  is_measured = 0;
  qsort(samples, (size_t)sample_count, sizeof *samples, compare_samples);
  printf("{\"answered\":%ld,\"seconds\":%.6f,\"p50Us\":%.2f,\"p99Us\":%.2f}\n", measured, seconds,
         samples[sample_count / 2], samples[sample_count * 99 / 100]);
  fflush(stdout);
  is_over = 1;
  for (int index = 0; index < client_count; index++) while (clients[index].outstanding > 0) turn(PATIENCE_MS);
  return 0;
}
