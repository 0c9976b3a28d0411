/* tensor_map: what a launch makes a tensor map of. */
#pragma once
#include "layout/layout.h"

/* An array of two dimensions as the hardware copies blocks of it, a parameter of 128 bytes that a launch makes (CUDA driver API,
 * cuTensorMapEncodeTiled): elements of so many bytes, from the address in parameter `param` on, or from a place that copies
 * say, in chunks (TT_CHUNK) behind that. */
enum { MAP_TERMS = 4, MAP_BYTES = 128 };
#define MAP_UNCHECKED (1ll << 31) /* the extent where nothing lies beyond an edge */
typedef struct TensorMap {
    int param;
    /* of the launch's checks: rows, columns, their strides in elements; -1: MAP_UNCHECKED */
    int terms[MAP_TERMS];
    int has_places;
    int element_bytes, rows,
        row_bytes; /* a box has `rows` rows, of `row_bytes` bytes, of which chunks are exchanged */
} TensorMap;
