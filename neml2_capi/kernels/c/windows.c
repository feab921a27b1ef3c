/*
 * What kernels ask for on Windows, so that their library needs no other, and no start code of a C library: 5 KB instead of 70.
 *
 * Compiled with -fno-builtin: a loop that fills or copies would become a call of itself.
 */
#include <stddef.h>

/* Called when the library is loaded and a thread starts or ends: there is nothing to do. */
int neml2_kernels_entry(void* library, unsigned long reason, void* reserved);
int neml2_kernels_entry(void* library, unsigned long reason, void* reserved) {
  (void)library;
  (void)reason;
  (void)reserved;
  return 1;
}

void* memset(void* to, int value, size_t size);
void* memset(void* to, int value, size_t size) {
  unsigned char* bytes = to;
  for (size_t i = 0; i < size; ++i) bytes[i] = (unsigned char)value;
  return to;
}

void* memcpy(void* restrict to, const void* restrict from, size_t size);
void* memcpy(void* restrict to, const void* restrict from, size_t size) {
  unsigned char* bytes = to;
  const unsigned char* others = from;
  for (size_t i = 0; i < size; ++i) bytes[i] = others[i];
  return to;
}

void* memmove(void* to, const void* from, size_t size);
void* memmove(void* to, const void* from, size_t size) {
  unsigned char* bytes = to;
  const unsigned char* others = from;
  if (bytes < others)
    for (size_t i = 0; i < size; ++i) bytes[i] = others[i];
  else
    for (size_t i = size; i > 0; --i) bytes[i - 1] = others[i - 1];
  return to;
}

/*
 * Touches each page of a frame that is larger than one: the stack of Windows grows by a page. The size is in rax, or in x15 in
 * units of 16 bytes; all registers stay but x16 and x17.
 */
#if defined(__x86_64__)
__asm__(
    ".globl ___chkstk_ms\n"
    "___chkstk_ms:\n"
    "  pushq %rcx\n"
    "  pushq %rax\n"
    "  leaq 24(%rsp), %rcx\n"
    "1:\n"
    "  cmpq $0x1000, %rax\n"
    "  jb 2f\n"
    "  subq $0x1000, %rcx\n"
    "  orq $0, (%rcx)\n"
    "  subq $0x1000, %rax\n"
    "  jmp 1b\n"
    "2:\n"
    "  subq %rax, %rcx\n"
    "  orq $0, (%rcx)\n"
    "  popq %rax\n"
    "  popq %rcx\n"
    "  ret\n");
#elif defined(__aarch64__)
__asm__(
    ".globl __chkstk\n"
    "__chkstk:\n"
    "  lsl x16, x15, #4\n"
    "  mov x17, sp\n"
    "1:\n"
    "  cmp x16, #0x1000\n"
    "  b.lo 2f\n"
    "  sub x17, x17, #0x1000\n"
    "  ldr xzr, [x17]\n"
    "  sub x16, x16, #0x1000\n"
    "  b 1b\n"
    "2:\n"
    "  sub x17, x17, x16\n"
    "  ldr xzr, [x17]\n"
    "  ret\n");
#endif
