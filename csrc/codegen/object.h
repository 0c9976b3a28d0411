/* Object files: their sections, and what their line tables say. */
#pragma once
#include "codegen/codegen.h"

/* The module as an object file, for the caller to dispose of. */
LLVMMemoryBufferRef tt_codegen_object_buffer(Codegen *codegen);

/* Bytes of a section, which belong to `object`; NULL and 0 where there is none of that name. */
typedef struct Section {
    const uint8_t *data;
    size_t size;
} Section;
Section tt_object_section(Codegen *codegen, LLVMMemoryBufferRef object, const char *name);
