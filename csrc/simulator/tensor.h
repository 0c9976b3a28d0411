/* Internal to simulator/: elements of tensor cores' operands, and how products are summed. */
#pragma once
#include "simulator/simulator.h"

int sim_element_bytes(SimElement element);
/* The value of one that lies at `place`: every one of them is a double, exactly. */
double sim_decode(SimElement element, const void *place);
/* A row of a, or a column of b: K elements. */
typedef struct SimRow {
    double at[32];
} SimRow;
/* Puts what a lane has in a register of a's fragment where it belongs in 16 rows. Registers 0 and 2 of it are laid out as
 * 0 and 1 of b's fragment, in 8 columns. */
void sim_put_register(SimElement element, int lane, int number, const void *word, SimRow *rows);
/* A word of sums, i32 or f32, and K products of such elements. An i32 wraps, or stays at its limits. */
uint32_t sim_add_products(SimElement element, bool saturates, uint32_t sum, const SimRow *a, const SimRow *b);
/* The same of a word of two sums in fp16, of which the second is that with the column b[1]. */
uint32_t sim_add_to_halves(SimElement element, uint32_t sums, const SimRow *a, const SimRow *b);
