// Ends a test program, with the line and the condition, where a condition does not hold.
#pragma once

#include <cstdio>
#include <cstdlib>

#define CHECK(condition)                                                 \
    do {                                                                 \
        if (!(condition)) {                                              \
            std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
            std::exit(1);                                                \
        }                                                                \
    } while (false)
