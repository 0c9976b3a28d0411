/* Internal to the SIMT lowering: operations on memory take registers that hold neighbours as one vector. */
#pragma once
#include "gpu/simt.h"

enum { LONGEST_VECTOR = 16 /* elements */ };

/* How an operation's registers fall into vectors: vector i of register r (none of the bits set) has register r with
 * bits[j] set for each bit j of i. */
typedef struct Vectors {
    int axis, count_bits, bits[4];
    uint32_t mask; /* of the register bits within a vector */
} Vectors;

typedef struct Masks {
    const Tile *tile;     /* of the mask operand, or NULL */
    const AxisInfo *info; /* of it */
    const Type *type;     /* tile type, whose padding is masked off; NULL for scalars */
    const LinearLayout *layout;
    LLVMValueRef first_copy; /* of stores and atomics: this thread acts */
} Masks;

/* The widest vectors of up to `most` elements (a power of two) that the operation's pointers allow. */
Vectors simt_plan_vectors(Simt *s, const Op *op, const LinearLayout *layout, int bytes, int most);
int simt_vector_register(const Vectors *v, int first, int at);
/* The first register whose element lies in the same group of equal elements of the tile, by its place. */
int simt_alike(const LinearLayout *layout, const AxisInfo *info, int reg);
/* `operand`: the number of the operation's mask, which need not be there. */
Masks simt_masks_of(Simt *s, const Op *op, int operand, const LinearLayout *layout);
/* Is the mask the same for the whole vector? */
bool simt_is_uniform_mask(const Masks *m, const Vectors *v, int first);
/* The mask under which the vector starting at `first` is accessed at once (NULL: always); where it may be cut, single[i]
 * is that of element i when it is, else single[0] is NULL. */
LLVMValueRef simt_vector_masks(Simt *s, const Masks *m, const Vectors *v, int first, LLVMValueRef *single);
