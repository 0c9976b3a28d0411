/* The words of a key, between specialize.c, which writes them, and signature.c, which reads them. */
#pragma once
#include <stdint.h>

typedef enum KeyTag {
    KEY_POINTER = 1,
    KEY_CONST_POINTER,
    KEY_SCALAR,
    KEY_NONE,
    KEY_BOOL,
    KEY_INT,
    KEY_FLOAT,
    KEY_OBJECT,
    KEY_TUPLE,
    KEY_NAMED_TUPLE,
    KEY_MAPPING,
    KEY_OPTION,
    KEY_TARGET,
} KeyTag;

enum { KEY_NEGATIVE = 0x80 }; /* of a SCALAR: the number is */

#define KEY_WORD(tag, payload) ((uint64_t)(tag) << 56 | (uint64_t)(payload))
#define KEY_TAG(word) ((KeyTag)((word) >> 56))
#define KEY_PAYLOAD(word) ((word) & (((uint64_t)1 << 56) - 1))
