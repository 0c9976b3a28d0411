/* The simulated machine as the tests reach it, without a compiler: the threads of a block go through a list of
 * instructions on their registers. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "simulator/simulator.h"
#include "support/support.h"

/* Its number in the list is its line in messages. Registers are named by their number: `r` of the first one. */
typedef struct Instruction {
    int32_t opcode, r, x[6];
} Instruction;

typedef struct Program {
    const Instruction *instructions;
    SimSite *sites;
    int count;
    uint32_t *registers; /* of thread 0, then of the others */
    int register_count;  /* a thread */
} Program;

static const char *const opcodes[] = {"store",         "load",           "barrier",    "warp_sync",
                                      "load_matrices", "store_matrices", "mma",        "wgmma_begin",
                                      "wgmma",         "commit_wgmma",   "wait_wgmma", "copy_async",
                                      "commit_copies", "wait_copies",    "fence_proxy"};

static void product(SimThread *self, const Instruction *i, uint32_t *registers, const SimSite *site)
{
    SimWgmma given = {.adds = (uint32_t)i->x[5], .in_halves = (uint32_t)i->x[2] >> 16};
    uint32_t *sums = registers + i->x[1];
    size_t bytes = (size_t)i->x[3] * (given.in_halves ? 1 : 2);
    memcpy(&given, registers + i->r, 2 * sizeof(uint64_t));
    memcpy(given.a_words, registers + i->x[0], sizeof given.a_words);
    memcpy(given.sums, sums, bytes);
    tt_sim_wgmma(self, i->x[2] & 255, i->x[2] >> 8 & 255, i->x[3], i->x[4] & 255, i->x[4] >> 8, &given, site);
    memcpy(sums, given.sums, bytes);
}

static void multiply(SimThread *self, const Instruction *i, uint32_t *at, const SimSite *site)
{
    SimMma given;
    memcpy(&given, at, sizeof given);
    tt_sim_mma(self, i->x[0], i->x[1], i->x[2], &given, site);
    memcpy(at, &given, sizeof given);
}

static void copy(SimThread *self, const Instruction *i, const uint32_t *at, const SimSite *site)
{
    uint64_t address;
    memcpy(&address, at + 1, sizeof address);
    tt_sim_copy_async(self, at[0], address, i->x[0], (int32_t)at[3], site);
}

static void transfer(SimThread *self, const Instruction *i, uint32_t *registers, const SimSite *site)
{
    for (int word = 0; word < i->x[1]; word++) {
        uint64_t offset = registers[i->r] + (uint32_t)word * 4;
        uint32_t *value = &registers[i->x[0] + word];
        if (i->opcode)
            memcpy(value, tt_sim_access(self, SIM_SHARED, offset, 4, SIM_READ, true, site), sizeof *value);
        else
            tt_sim_store(self, SIM_SHARED, offset, 4, SIM_WRITE, value, true, site);
    }
}

static void execute(SimThread *self, const Instruction *i, uint32_t *registers, const SimSite *site)
{
    uint32_t *at = registers + i->r;
    switch (i->opcode) {
    case 2:
        return tt_sim_barrier(self, 0, 0, site);
    case 3:
        return tt_sim_warp_sync(self, 0xffffffffu, site);
    case 4:
        return tt_sim_load_matrices(self, *at, i->x[1], i->x[2], registers + i->x[0], site);
    case 5:
        return tt_sim_store_matrices(self, *at, i->x[1], i->x[2], registers + i->x[0], site);
    case 6:
        return multiply(self, i, at, site);
    case 7:
        return tt_sim_wgmma_begin(self);
    case 8:
        return product(self, i, registers, site);
    case 9:
        return tt_sim_wgmma_commit(self);
    case 10:
        return tt_sim_wgmma_wait(self, i->x[1], at, i->x[0], site);
    case 11:
        return copy(self, i, at, site);
    case 12:
        return tt_sim_copy_commit(self);
    case 13:
        return tt_sim_copy_wait(self, i->x[0]);
    case 14:
        return tt_sim_fence_proxy(self);
    default:
        return transfer(self, i, registers, site);
    }
}

static void run_thread(SimThread *self, const uint64_t *args)
{
    const Program *program = (const Program *)(uintptr_t)args[0];
    uint32_t *registers = program->registers + self->index * program->register_count;
    for (int i = 0; i < program->count; i++)
        execute(self, &program->instructions[i], registers, &program->sites[i]);
}

static void name_sites(Program *program)
{
    for (int i = 0; i < program->count; i++)
        program->sites[i] = (SimSite){"program", i, 0, -1,
                                      opcodes[(uint32_t)program->instructions[i].opcode % TT_COUNT(opcodes)]};
}

/* The one block runs in this thread, which finds out by itself. */
static void knock_at_nobody(void) {}

static PyObject *run(Program *program, int threads, int shared_bytes)
{
    uint64_t args[] = {(uintptr_t)program};
    SimLaunch launch = {.entry = run_thread,
                        .args = args,
                        .grid = {1, 1, 1},
                        .threads = threads,
                        .shared_bytes = shared_bytes,
                        .stack_bytes = 64 << 10,
                        .knock = knock_at_nobody,
                        .lock = PTHREAD_MUTEX_INITIALIZER};
    name_sites(program);
    tt_sim_run_block(&launch, (int32_t[]){0, 0, 0});
    tt_sim_end(&launch);
    if (launch.failed)
        return PyUnicode_FromString(launch.error.message);
    return Py_NewRef(Py_None);
}

static PyObject *run_instructions(PyObject *module, PyObject *args)
{
    Py_buffer instructions, registers;
    int threads, shared_bytes;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*w*ii", &instructions, &registers, &threads, &shared_bytes))
        return NULL;
    Program program = {.instructions = instructions.buf,
                       .count = (int)((size_t)instructions.len / sizeof(Instruction)),
                       .registers = registers.buf,
                       .register_count = (int)(registers.len / threads / 4)};
    program.sites = PyMem_Malloc(sizeof(SimSite) * (size_t)(program.count + 1));
    PyObject *result = program.sites ? run(&program, threads, shared_bytes) : PyErr_NoMemory();
    PyMem_Free(program.sites);
    PyBuffer_Release(&instructions);
    PyBuffer_Release(&registers);
    return result;
}

PyMethodDef tt_testing_simulator_methods[] = {
    {"_run_instructions", run_instructions, METH_VARARGS,
     "_run_instructions(instructions, registers, threads, shared_bytes) -> str | None\n--\n\n"
     "A simulated block runs instructions, eight i32 each, on registers, u32 of each thread; what it fails "
     "with."},
    {NULL, NULL, 0, NULL},
};
