/* A program of a later release, which calls a function that this library lacks. */
#include "neml2_capi.h"

int main(void) { return neml2_later() == 7 ? 0 : 1; }
