// Mark of the functions and tables that hosts look for.
#pragma once

#if defined(_WIN32)
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

// Other names of a function of C, as Intel's Fortran spells it for Abaqus, and others do; on Linux all hosts write `umat_`.
#if defined(_WIN32)
#define ALSO_NAMED(function, name) extern "C" EXPORTED decltype(function) name __attribute__((alias(#function)));
#elif defined(__APPLE__)
#define ALSO_NAMED(function, name) __asm__(".globl _" #name "\n.set _" #name ", _" #function);
#else
#define ALSO_NAMED(function, name)
#endif
