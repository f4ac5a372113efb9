// Runs CUDA kernels on the CPU: blocks one after another, in a block one fiber a thread, which
// hands over at barriers. Between barriers the order of the threads is shuffled by a seed, shared
// memory is NaN before every block, and so is what lies beyond the ends of every array.
#pragma once
#include <cmath>
#include <csetjmp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>

struct dim3 { unsigned x, y, z; };
static dim3 threadIdx, blockIdx, blockDim, gridDim;
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static __attribute__((section("cudashared")))
extern "C" char __start_cudashared[] __attribute__((weak));
extern "C" char __stop_cudashared[] __attribute__((weak));
static inline double __longlong_as_double(long long bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

namespace cpu {
enum { MOST = 256, STACK = 64 * 1024, EDGE = 64 };
enum Fault { NONE, DIVERGENT, BEYOND };
struct Fiber { jmp_buf place; bool made, done, waiting; };
static Fiber fibers[MOST];
static jmp_buf scheduler;
static int current;
static unsigned state;
static void (*body)();
static void **arguments;

static unsigned random_number() { return (state = state * 1664525u + 1013904223u) >> 8; }

static void hand_over() {
    if (!_setjmp(fibers[current].place)) _longjmp(scheduler, 1);
}

static void wait() {
    fibers[current].waiting = true;
    hand_over();
}

// A fiber lives on: it runs the body once for every block.
static void live() {
    for (;;) {
        body();
        fibers[current].done = true;
        hand_over();
    }
}

static void go_on(Fiber &one) {
    static ucontext_t context;
    if (_setjmp(scheduler)) return;
    if (one.made) _longjmp(one.place, 1);
    one.made = true;
    getcontext(&context);
    context.uc_stack.ss_sp = malloc(STACK);
    context.uc_stack.ss_size = STACK;
    makecontext(&context, live, 0);
    setcontext(&context);
}

static void shuffle(int *order, int n) {
    for (int i = n - 1; state && i > 0; i--) {
        int other = random_number() % (i + 1), kept = order[i];
        order[i] = order[other], order[other] = kept;
    }
}

static int block_without_barriers(int n, int *order) {
    shuffle(order, n);
    for (int i = 0; i < n; i++) threadIdx.x = order[i], body();
    return NONE;
}

static int block(int n, int *order) {
    memset(__start_cudashared, 0xFF, __stop_cudashared - __start_cudashared);
    for (int i = 0; i < n; i++) fibers[i].done = fibers[i].waiting = false;
    for (;;) {
        int running = 0, waiting = 0;
        shuffle(order, n);
        for (int k = 0; k < n; k++) {
            current = threadIdx.x = order[k];
            if (!fibers[current].done) go_on(fibers[current]);
            running += !fibers[current].done;
        }
        for (int i = 0; i < n; i++) waiting += fibers[i].waiting, fibers[i].waiting = false;
        if (!running) return NONE;
        if (waiting != n) {  // a barrier that not all threads reach
            for (int i = 0; i < n; i++) fibers[i].made = false;
            return DIVERGENT;
        }
    }
}

static int launch(unsigned gx, unsigned gy, unsigned threads, unsigned seed, bool barriers) {
    static int order[MOST];
    gridDim = {gx, gy, 1}, blockDim = {threads, 1, 1}, state = seed;
    for (unsigned i = 0; i < threads; i++) order[i] = i;
    int fault = NONE;
    for (unsigned y = 0; y < gy; y++)
        for (unsigned x = 0; x < gx && !fault; x++) {
            blockIdx = {x, y, 0};
            fault = barriers ? block(threads, order) : block_without_barriers(threads, order);
        }
    return fault;
}

// NaN in double and in single precision, another for each array.
static void fill_edge(char *edge, size_t bytes, int k) {
    const uint32_t words[2] = {0x7fc00000u | (k + 1), 0x7ff80000u | (k + 1)};
    for (size_t i = 0; i < bytes; i += sizeof words) memcpy(edge + i, words, sizeof words);
}

static bool is_whole(const char *edge, size_t bytes, int k) {
    char filled[EDGE * sizeof(double)];
    fill_edge(filled, bytes, k);
    return !memcmp(edge, filled, bytes);
}

// Calls with copies of the arrays between edges of NaN; with an address sanitizer, without edges.
static int guarded(void **given, const size_t *sizes, int count, unsigned gx, unsigned gy,
                   unsigned threads, unsigned seed, bool barriers) {
#ifdef __SANITIZE_ADDRESS__
    const size_t edge = 0;
#else
    const size_t edge = EDGE * sizeof(double);
#endif
    char *copies[256];
    void *inside[256];
    for (int k = 0; k < count; k++) {
        copies[k] = (char *)malloc(sizes[k] + 2 * edge);
        fill_edge(copies[k], edge, k);
        fill_edge(copies[k] + edge + sizes[k], edge, k);
        inside[k] = memcpy(copies[k] + edge, given[k], sizes[k]);
    }
    arguments = inside;
    int fault = launch(gx, gy, threads, seed, barriers);
    for (int k = 0; k < count; k++) {
        if (!is_whole(copies[k], edge, k) || !is_whole(copies[k] + edge + sizes[k], edge, k))
            fault = BEYOND;
        memcpy(given[k], inside[k], sizes[k]);
        free(copies[k]);
    }
    return fault;
}
}  // namespace cpu

static inline void __syncthreads() { cpu::wait(); }
static inline int __syncthreads_or(int here) {
    static int any;
    if (here) any = 1;
    cpu::wait();
    const int found = any;
    cpu::wait();
    any = 0;
    cpu::wait();
    return found;
}
