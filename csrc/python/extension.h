/* python: the extension module triton._C. The arguments of a launch become a key and 64-bit slots; the key finds a
 * compiled kernel or has one compiled; the slots go to the target. Every function here needs the GIL. */
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "analysis/ranges.h"
#include "frontend/frontend.h"
#include "opt/opt.h"
#include "runtime/code.h"

/* ---- scalars.c: the element types that arguments may have ---------------------------------------------------- */

typedef enum ScalarKind {
    SCALAR_I1,
    SCALAR_I8,
    SCALAR_I16,
    SCALAR_I32,
    SCALAR_I64,
    SCALAR_U8,
    SCALAR_U16,
    SCALAR_U32,
    SCALAR_U64,
    SCALAR_FP16,
    SCALAR_BF16,
    SCALAR_FP32,
    SCALAR_FP64,
    SCALAR_FP8E4NV,
    SCALAR_FP8E5,
    SCALAR_FP8E4B15,
    SCALAR_FP8E4B8,
    SCALAR_FP8E5B16,
    SCALAR_KINDS, /* as a value: none of them */
} ScalarKind;

typedef struct ScalarInfo {
    const char *name;       /* in signatures: "fp32" */
    const char *array_name; /* in NumPy and torch: "float32" */
    const char *dtype_name; /* tl.dtype.name: "fp32", "int32" */
    int bytes;
    enum { UNSIGNED_INT, SIGNED_INT, FLOATING } family;
} ScalarInfo;
extern const ScalarInfo tt_scalars[SCALAR_KINDS];
extern const char tt_supported_dtypes[]; /* for messages */

/* By any of its names, with or without a module in front ("torch.float32"). */
ScalarKind tt_scalar_by_name(const char *name);
/* The bits of `value`, rounded to the type of floats. */
uint64_t tt_scalar_from_double(ScalarKind kind, double value);

/* ---- state.c: what the module keeps, and how types of arguments are told apart --------------------------------- */

typedef enum ArgumentKind {
    ARG_BOOL,
    ARG_INT,
    ARG_INDEX, /* no int, but has __index__: NumPy's integers */
    ARG_FLOAT,
    ARG_NUMPY_BOOL,
    ARG_NUMPY_FLOAT,
    ARG_NONE,
    ARG_TUPLE,
    ARG_CONSTEXPR,  /* tl.constexpr around a value */
    ARG_CONSTANT,   /* a string, a type of the language, a function: a compile-time value by nature */
    ARG_DTYPE,      /* torch.dtype, numpy.dtype: stands for an array of it in a warmup, else a constant */
    ARG_DESCRIPTOR, /* triton.tools.tensor_descriptor.TensorDescriptor: passed as the tuple that it makes */
    ARG_MOCK,       /* triton.MockTensor: stands for an array of its dtype in a warmup, and is nothing else */
    ARG_NDARRAY,
    ARG_EXCHANGE,  /* DLPack's C exchange API: torch and others */
    ARG_DATA_PTR,  /* has data_ptr() and dtype */
    ARG_INTERFACE, /* __array_interface__ */
    ARG_CUDA_INTERFACE,
    ARG_DLPACK, /* __dlpack__() */
    ARG_UNKNOWN,
} ArgumentKind;

typedef struct TypeEntry {
    PyTypeObject *type; /* strong, so that no other type can come to lie at its address */
    ArgumentKind kind;
    bool is_cupy, is_torch;
    bool is_plain_torch;   /* torch.Tensor or Parameter itself: as C++ knows it, it is no more than that */
    bool has_negative_bit; /* has is_neg(): its memory may hold the opposite of its values */
    const void *exchange;  /* ARG_EXCHANGE: the table of functions */
} TypeEntry;

/* Options of a launch. Those of kind IGNORED are accepted for targets to come; LAUNCH ones are not compiled in. */
typedef enum OptionKind {
    OPTION_POWER_OF_TWO,
    OPTION_COUNT,
    OPTION_BOOL,
    OPTION_TEXT,
    OPTION_LAUNCH,
    OPTION_IGNORED
} OptionKind;
#define TT_OPTIONS(OPTION)                                                                                   \
    OPTION(num_warps, POWER_OF_TWO)                                                                          \
    OPTION(num_stages, COUNT)                                                                                \
    OPTION(num_ctas, POWER_OF_TWO)                                                                           \
    OPTION(maxnreg, COUNT)                                                                                   \
    OPTION(ptx_version, COUNT)                                                                               \
    OPTION(choices, TEXT)     /* what passes are to choose: "rows=4 programs=2" */                           \
    OPTION(ir_override, TEXT) /* a file that stands for a stage: see triton/compiler/dumping.py */           \
    OPTION(arch, TEXT)        /* "sm90": the GPU that it is meant for */                                     \
    OPTION(debug, BOOL)                                                                                      \
    OPTION(warmup, LAUNCH)                                                                                   \
    OPTION(grid, LAUNCH)                                                                                     \
    OPTION(stream, LAUNCH)                                                                                   \
    OPTION(cluster_dims, IGNORED)                                                                            \
    OPTION(enable_reflect_ftz, IGNORED) /* small numbers are never flushed to zero */                        \
    OPTION(extern_libs, IGNORED)        /* libdevice is found without */                                     \
    OPTION(enable_fp_fusion, BOOL)                                                                           \
    OPTION(launch_cooperative_grid, BOOL)                                                                    \
    OPTION(launch_pdl, BOOL)                                                                                 \
    OPTION(sanitize_overflow, BOOL)
typedef enum Option {
#define OPTION(name, kind) OPTION_##name,
    TT_OPTIONS(OPTION)
#undef OPTION
        TT_OPTION_COUNT,
} Option;
extern const OptionKind tt_option_kinds[TT_OPTION_COUNT];

#define TT_NAMES(NAME)                                                                                       \
    NAME(__array_interface__)                                                                                \
    NAME(__cuda_array_interface__)                                                                           \
    NAME(__dlpack__)                                                                                         \
    NAME(__dlpack_c_exchange_api__)                                                                          \
    NAME(__module__)                                                                                         \
    NAME(__name__)                                                                                           \
    NAME(__triton_kind__)                                                                                    \
    NAME(calls)                                                                                              \
    NAME(cell_contents)                                                                                      \
    NAME(shape)                                                                                              \
    NAME(stride)                                                                                             \
    NAME(data)                                                                                               \
    NAME(data_ptr)                                                                                           \
    NAME(device)                                                                                             \
    NAME(device_id)                                                                                          \
    NAME(dtype)                                                                                              \
    NAME(id)                                                                                                 \
    NAME(is_neg)                                                                                             \
    NAME(name)                                                                                               \
    NAME(ptr)                                                                                                \
    NAME(value)
enum { TYPE_CACHE_SIZE = 128 };

/* Where TRITON_TARGET stands among the variables of the environment: getenv() looks at them all. */
typedef struct TargetVariable {
    char **variables, *witness; /* `environ`; its variable at `place` */
    size_t place;               /* of it, or of the last variable if it is not there */
    const char *value;          /* NULL: it is not there */
} TargetVariable;

/* What runtime/torch_bits.py finds out about tensors of torch: in which word of the object that their object points to
 * they have their negative bit, and functions that say where their memory lies. */
typedef struct TorchTensors {
    bool looked_for;
    int pointer_word, word;
    uint64_t mask; /* 0: not found, so that torch has to be asked */
    /* Each takes where the pointer lies; not 0 if it fails. NULL: not found either. */
    int (*address)(void *tensor, void **address), (*dtype)(void *tensor, int32_t *dtype);
    int (*device)(void *tensor, int32_t *kind), (*ordinal)(void *tensor, int32_t *ordinal);
    int cpu, cuda;        /* kinds of devices */
    uint64_t plain;       /* all bits that tensors with memory of their own may have in that word */
    uint8_t elements[64]; /* by dtype, a ScalarKind plus one; 0: none that is known */
} TorchTensors;

/* Called around what happens to a kernel once. BEFORE_COMPILE gets (kernel, signature, options, target, whether it is for a
 * warmup), AFTER_COMPILE the compiled kernel and that, the others the compiled kernel. */
typedef enum KernelHook {
    BEFORE_COMPILE,
    AFTER_COMPILE,
    BEFORE_LOAD,
    AFTER_LOAD,
    BEFORE_UNLOAD,
    KERNEL_HOOKS
} KernelHook;

typedef struct State {
    PyTypeObject *kernel_type, *launcher_type;
#define NAME(name) PyObject *name;
    struct {
        TT_NAMES(NAME)
    } names; /* interned */
#undef NAME
    PyObject *options[TT_OPTION_COUNT]; /* their names, interned */
    PyObject *debug;                    /* the option's value unless a launch or kernel gives one, or NULL */
    PyObject *interpreter;              /* runs launches in place of compiled code, or NULL */
    PyObject *kernel_hooks[KERNEL_HOOKS]; /* of runtime/kernel_hooks.py; NULL: none */
    PyObject *launch_hooks[2];            /* called before and after each launch of any kernel; NULL: none */
    TypeEntry types[TYPE_CACHE_SIZE];
    PyTypeObject *numpy_dtype; /* numpy.dtype; NULL before it was first wanted, like what follows */
    PyObject *current_stream;  /* triton.runtime.driver.current_stream */
    TorchTensors torch;
    TargetVariable target;
    PyObject *dtype_texts; /* dict from dtypes of arrays to their names */
    bool collector_rests;  /* while a program is read */
} State;
int tt_state_init(PyObject *module);
int tt_state_traverse(PyObject *module, visitproc visit, void *arg);
int tt_state_clear(PyObject *module);
/* Of the module that made `type` or a type it derives from; NULL with an error set. */
State *tt_state_of(PyTypeObject *type);
/* NULL with an error set. Valid until the next call. */
/* NULL with an exception set that is not for us to forgive. */
const TypeEntry *tt_classify(State *state, PyObject *object);
/* What is known of a type already, or NULL. */
const TypeEntry *tt_known_type(const State *state, PyTypeObject *type);
/* An attribute of what is only looked at: NULL where there is none or the object raises. An exception that is not for us
 * to forgive stays, and every later look gives NULL; whoever looked has to ask for it in the end. */
PyObject *tt_look(PyObject *object, PyObject *attribute);
/* Attribute of a module of this package, which is imported if it was not; a new reference. */
PyObject *tt_import(const char *module, const char *name);

/* Steals `arguments`, a tuple or NULL; false with an error set. */
bool tt_call_kernel_hook(const State *state, KernelHook hook, PyObject *arguments);

/* ---- tensor.c: arrays of other libraries ------------------------------------------------------------------------ */

enum { DEVICE_CPU = 1, DEVICE_CUDA = 2 }; /* as DLPack numbers them */
typedef struct Tensor {
    uint64_t address;
    uint64_t begin, end; /* of the memory that its elements lie in; all of memory when that is not known */
    ScalarKind element;
    int device_type, device_id;
    bool read_only;
    bool has_stream; /* what is enqueued on `stream` must come first */
    void *stream;
} Tensor;

/* Which memory Tensor.begin and end are to be of: none, the elements of the array, or all of what it is a view of. */
typedef enum Span { NO_SPAN, SPAN_OF_ARRAY, SPAN_OF_STORAGE } Span;

/* Where an argument stands: a parameter, or an element of a tuple. */
typedef struct ArgumentPath {
    PyObject *function, *name;        /* of the kernel, of the parameter */
    const struct ArgumentPath *tuple; /* that holds it, or NULL */
    Py_ssize_t index;                 /* in that tuple */
    Span with_range;                  /* what Tensor.begin and end are wanted of */
} ArgumentPath;
/* Sets an exception whose message begins with the kernel and the argument; always false. The format is Python's. */
bool tt_argument_error(const ArgumentPath *path, PyObject *exception, const char *format, ...);
/* Whether programs may have memory there. */
bool tt_is_plain_address(uint64_t address);
/* The error for an array that has no memory at its address, or (`address` NULL) has no address; always false. */
bool tt_memory_error(const ArgumentPath *path, PyObject *object, const uint64_t *address);

/* Reads an argument of one of the array kinds; no reference to it is kept. False with an error set. */
bool tt_read_tensor(State *state, const TypeEntry *entry, PyObject *object, const ArgumentPath *path,
                    Tensor *tensor);
/* Whether what lies at its address may be read and written as its elements. False with an error set. */
bool tt_check_memory(State *state, const TypeEntry *entry, PyObject *object, const ArgumentPath *path,
                     const Tensor *tensor);
/* Fills in `state->torch` once torch is imported, if nobody has yet. False with an error set. */
bool tt_know_torch(State *state);
/* False if torch has no such functions, or not for this tensor. */
bool tt_read_torch(const TorchTensors *torch, PyObject *object, Tensor *tensor);
/* The stream that the array's library works on now; false when it has no way to say so. */
bool tt_exchange_stream(const TypeEntry *entry, int device, void **stream);
/* The type that a dtype of NumPy, torch or the language stands for; SCALAR_KINDS if none. */
ScalarKind tt_scalar_of_dtype(PyObject *dtype);

/* ---- specialize.c: arguments to a key and slots ------------------------------------------------------------------- */

enum { PARAM_POSITIONAL_ONLY, PARAM_ANY, PARAM_VARIADIC, PARAM_KEYWORD_ONLY, PARAM_META };
typedef struct Param {
    PyObject *name;          /* interned */
    PyObject *default_value; /* or NULL */
    int kind;
    bool is_constexpr, is_const;
    bool any_value, any_alignment; /* neither is a reason for a new variant */
    ScalarKind scalar, pointee;    /* named by the annotation (tl.int64, "*fp32"), else SCALAR_KINDS */
} Param;

/* What an argument of a type whose values do not change became the last time: such as a compile-time value, or a stride
 * that stays what it is, is the same object in many launches. */
typedef struct Known {
    PyObject *value; /* strong; NULL: none yet */
    uint64_t words[2], slot;
    int word_count;
    bool has_slot, has_object;
    enum { NUMBER_UNKNOWN, NUMBER_FREE, NUMBER_FIXED } role; /* see learn_roles in launch.c */
} Known;

/* What a compiled kernel is found by: equal words and equal objects are an equal specialisation. */
typedef struct Key {
    uint64_t *words;
    PyObject **objects; /* borrowed while a launch builds them, strong in a table */
    int word_count, object_count;
    uint64_t hash;
} Key;

/* Of slots: an array that must not be stored to; a number of which the key could say more than it does. */
enum { MARK_READ_ONLY = 1, MARK_SPECIAL = 2 };
enum { INLINE_WORDS = 128, INLINE_OBJECTS = 16, INLINE_SLOTS = 64, AWAITED_STREAMS = 8 };
typedef struct Specialization {
    State *state;
    PyObject *function; /* its name */
    bool warmup;
    Span with_ranges; /* the slots end with begin and end of each pointer's array: see opt/check_bounds.c */
    Key key;
    uint64_t *slots;
    bool is_general;        /* nothing is made of what a number is: the key is the most general one */
    bool is_launch_general; /* it was so for the numbers that are free: see `Known` */
    uint8_t *marks;         /* for each slot: of MARK_... */
    int slot_count, word_capacity, object_capacity, slot_capacity;
    bool any_read_only, any_special;
    uint64_t *ranges; /* allocated as they are needed */
    int range_count;
    PyObject *owned; /* list of what `key.objects` borrows from nobody else, or NULL */
    PyObject *
        array_argument; /* name of the first argument that is an array, or NULL; the others lie where it lies */
    PyTypeObject *array_type; /* its type, borrowed */
    bool on_cuda;             /* it lies on a CUDA device */
    Target target;            /* once finished */
    Place place;
    bool has_stream;                /* `place.stream` is the arrays' library's current one */
    void *awaited[AWAITED_STREAMS]; /* streams of other arrays, for `place` */
    bool too_many_streams;          /* for `awaited` */
    uint64_t inline_words[INLINE_WORDS], inline_slots[INLINE_SLOTS];
    PyObject *inline_objects[INLINE_OBJECTS];
    uint8_t inline_marks[INLINE_SLOTS];
} Specialization;
void tt_specialization_init(Specialization *s, State *state, PyObject *function, bool warmup);
void tt_specialization_release(Specialization *s);
/* Each adds to the key (and to the slots); false with an error set. */
bool tt_specialize_argument(Specialization *s, const Param *param, PyObject *value);
/* The tuple that a descriptor is passed as, which lives as long as `s`; anything else as it is. NULL with an error set. */
PyObject *tt_descriptor_tuple(Specialization *s, PyObject *value);
/* The same for a parameter of a kernel, with the help of what is known of it. */
bool tt_specialize_with(Specialization *s, const Param *param, PyObject *value, Known *known);
bool tt_specialize_option(Specialization *s, Option option, PyObject *value);
/* Once all arguments and options are in the key: chooses the target and completes the key. False with an error set. */
bool tt_specialization_finish(Specialization *s);
bool tt_specialization_add_ranges(Specialization *s); /* once the slots are */

/* ---- interpret.c: see the table of methods ------------------------------------------------------------------------- */

PyObject *tt_trace_operation(PyObject *module, PyObject *args);
PyObject *tt_evaluate_elements(PyObject *module, PyObject *args);

/* ---- table.c: compiled kernels by key ------------------------------------------------------------------------------ */

typedef struct Kernel Kernel;
typedef struct UsedName {
    PyObject *space, *name, *value; /* see FrontendRequest.used_names */
} UsedName;

/* triton._C.CompiledKernel */
typedef struct Compiled {
    PyObject_HEAD State *state;
    Kernel *
        kernel; /* strong if owns_kernel; else the kernel's table holds this, and it is NULL behind the kernel */
    bool owns_kernel;
    Key key; /* owned; no words if it was not made by a launch */
    UsedName *used_names;
    int used_name_count;
    Code *code;     /* NULL only in what was unpickled and not restored yet */
    int device;     /* that it was compiled for; -1: the current one when it is first loaded */
    bool is_loaded; /* then `facts` are known */
    bool was_launched;
    LoadedFacts facts;
    struct RunParam *run_params; /* run.c; NULL before its first use */
    PyObject *info;              /* dict: name, target, signature, timings, ... */
    const bool *stored;          /* for each slot: is it a pointer that the kernel may store through? */
    int slot_count;
    const bool *order;          /* see tt_analyze_order; in the code's memory */
    bool had_effects;           /* the program did something while it was read */
    bool is_spare;              /* compiled behind for launches to come; none of its class was there yet */
    bool checks_bounds;         /* the slots have the ranges behind them */
    unsigned rests_on;          /* LaunchFacts */
    const RangeProgram *checks; /* which hold for a launch; NULL: all do, for each */
    KnownLaunches *known;
    struct Compiled
        *other; /* the next one for launches of other facts, once there was such a launch, or NULL */
} Compiled;

typedef struct Table {
    Compiled **entries; /* strong */
    int count, capacity;
    int lookups;             /* under way: each may run the user's __eq__ */
    struct Table *forgotten; /* what these may be looking at, with what was forgotten before; or NULL */
} Table;
/* NULL if there is none, or with an error set. */
Compiled *tt_table_find(Table *table, const Key *key);
/* Takes a copy of the key into `compiled` and a reference to that. False with an error set. */
bool tt_table_add(Table *table, const Key *key, Compiled *compiled);
/* Of one that was in it and may be no longer. False with an error set. */
bool tt_table_rejoin(Table *table, Compiled *compiled);
int tt_table_traverse(Table *table, visitproc visit, void *arg);
/* Does somebody else hold one of its entries? */
bool tt_table_is_held(const Table *table);
/* What others hold owns its kernel then, or has none if that is going. */
void tt_table_clear(Table *table, bool kernel_stays);
/* The same, for a table in use, whose kernel stays: what is looked up just now lives on. */
void tt_table_forget(Table *table);
/* Of one that the kernel's table holds, or one of its entries does: it does not own the kernel any longer. */
void tt_leave_to_kernel(Compiled *compiled);
void tt_key_release(Key *key);
bool tt_copy_key(const Key *from, Key *to); /* what tt_key_release releases; false with an error set */
/* 1 or 0; -1 with an error set, for comparing may run the user's __eq__. */
int tt_is_same_key(const Key *a, const Key *b);
/* Has a name the value that a kernel was compiled with? False, maybe with an exception that is not for us to forgive. */
bool tt_name_holds(const UsedName *used, State *state);

/* ---- kernel.c: the base type of JITFunction, and kernel[grid] -------------------------------------------------------- */

struct Kernel {
    PyObject_HEAD State *state;
    PyObject *name;
    Param *params;
    int param_count, positional_count;
    int variadic, meta;    /* numbers of these parameters, or -1 */
    bool never_behind;     /* nothing is compiled in the background: that failed */
    bool has_option_names; /* a parameter is called like an option */
    bool was_kept;   /* by what was compiled from it, when nobody else held it; which goes on to own it */
    bool is_tuned;   /* at the moment: a grid that it is warmed up for is one to be launched */
    Known *known;    /* for each parameter */
    PyObject *hooks; /* list of functions called before each launch, or NULL */
    PyObject *walks; /* see walks.h; NULL: nobody wants them */
    PyObject *debug; /* the option's value unless a launch gives one, or NULL */
    Table table;
};
extern PyType_Spec tt_kernel_spec, tt_launcher_spec;

/* printed.c: an exception that is set stays. False with one set where this one is not. */
bool tt_write_output(const LaunchResult *result);

/* signature.c: the tuple of entries and the dict of options for the frontend, as new references. False with an error
 * set. */
bool tt_describe_key(const Key *key, const Kernel *kernel, PyObject **signature, PyObject **options);
/* The entry of a key of one argument alone. */
PyObject *tt_describe_entry(const Key *key);

/* ---- target.c: what runs a launch -------------------------------------------------------------------------------- */

/* From where the arrays lie, or TRITON_TARGET; without arrays the target that `triton.runtime.driver.active` has. Sets
 * `target` and `place.device`. False with an error set. */
bool tt_choose_target(Specialization *s);
/* The current stream of the library whose arrays have this type (NULL: there are none), if nothing better is known:
 * torch's, else CuPy's, else the device's default one. False with an error set. */
bool tt_find_stream(State *state, int device, PyTypeObject *array_type, void **stream);
bool tt_read_stream(PyObject *asked, void **stream); /* of the option `stream`; false with an error set */
/* A stream's handle from a number, as far as one can tell: the driver follows any other, and ends the process. False
 * with an error set. */
bool tt_read_stream_handle(PyObject *number, void **stream);
/* Fills in the capability of the machine's own device where `name` does not say it. False with an error set. */
bool tt_read_target(const char *name, Target *target);

/* Of the device that runs a launch; 0: it has none, or they are not counted. The simulator has as many as
 * TRITON_SIM_MULTIPROCESSORS says. */
int tt_multiprocessors(Target target, int device);

/* variants.c: the compiled kernel for a specialisation, compiled now if there is none; without `numbers`, or without
 * their slots, nothing is to be launched. A new reference, or NULL with an error set. */
Compiled *tt_find_variant(Kernel *kernel, const Specialization *s, const LaunchNumbers *numbers);
/* Compiles between the hooks; a new reference. */
Compiled *tt_compile_variant(Kernel *kernel, const Key *key, Target target, int device,
                             const LaunchNumbers *numbers, bool in_background);
/* What holds for these numbers, LaunchFacts; it can be launched where its own are among them. */
unsigned tt_facts_of_variant(const Compiled *compiled, LaunchNumbers numbers);

/* Is there one already? A new reference, or NULL, maybe with an error set. */
Compiled *tt_find_ready(Kernel *kernel, const Key *key, LaunchNumbers numbers);
/* Likewise one that gives the same results, though it was made for grids of other sizes: for large ones, if there is it. */
Compiled *tt_find_for_other_grid(Kernel *kernel, const Key *key, LaunchNumbers numbers);
/* For launches like the one that it was compiled for. False with an error set. */
bool tt_add_variant(Kernel *kernel, const Key *key, Compiled *compiled, const LaunchNumbers *numbers);

/* ---- background.c: compiling what a launch did without ---------------------------------------------------------------- */

typedef struct Request Request;
bool tt_background_enabled(void);
void tt_count_stand_in(void); /* a launch runs another variant than its own, which is compiled behind it */
/* For the variant of a specialisation; NULL when there is no memory. */
Request *tt_new_request(Kernel *kernel, const Specialization *s, const int32_t extents[3]);
/* Likewise, of which no launch is yet: sets `is_spare` of what is compiled. */
Request *tt_new_request_in_advance(Kernel *kernel, const Specialization *s, const int32_t extents[3]);
void tt_release_request(Request *request);
/* Takes the request over. */
void tt_compile_behind(Request *request);
/* In that thread, in place of tt_run_apart. False: the process ends. */
bool tt_run_behind(Apart *apart);
/* environment.c: from the first GPU code on, programs change the environment while nobody compiles any. Needs the GIL. */
void tt_guard_environment(void);
/* PyEval_SaveThread and PyEval_RestoreThread for all threads: that one gives way to others. */
PyThreadState *tt_give_gil(void);
void tt_get_gil(PyThreadState *released);
/* With the GIL, wherever other threads may run Python: lets them, in that thread. Nothing in any other one. */
void tt_breathe(void);

/* launch.c: launches, or with `grid` NULL takes the grid from the keywords. Returns the Compiled that ran. */
PyObject *tt_launch(Kernel *kernel, PyObject *grid, PyObject *const *args, Py_ssize_t count,
                    PyObject *keywords, bool warmup);

/* What all launches end with: runs the programs of a grid, without the GIL. False with an error set. */
bool tt_run_programs(Compiled *compiled, const Specialization *s, const int32_t extents[3]);

/* ---- run.c: a launch of just one compiled kernel --------------------------------------------------------------------- */

/* CompiledKernel._run(grid_0, grid_1, grid_2, stream, function, packed_metadata, launch_metadata, enter_hook, exit_hook,
 * *args). */
PyObject *tt_run_compiled(PyObject *self, PyObject *const *args, Py_ssize_t count);
void tt_release_run_params(Compiled *compiled);

/* ---- bind.c: arguments of a call to parameters and options --------------------------------------------------------- */

typedef struct Call {
    PyObject **values;                  /* for each parameter, borrowed */
    PyObject *options[TT_OPTION_COUNT]; /* borrowed, NULL where not given */
    bool has_options;                   /* one was given */
    PyObject *variadic, *meta;          /* strong, or NULL */
} Call;
/* `call->values` has room for every parameter. False with an error set; release in any case. */
bool tt_bind_call(const Kernel *kernel, PyObject *const *args, Py_ssize_t count, PyObject *keywords,
                  Call *call);
void tt_call_release(Call *call);
/* named_arguments(names, arguments, keywords): all of them by name. */
PyObject *tt_named_arguments(PyObject *module, PyObject *const *arguments, Py_ssize_t given);
/* tuning_key(arguments, places): the arguments at these places, as far as there are, then the names of the dtypes of
 * all that have one. */
PyObject *tt_tuning_key(PyObject *module, PyObject *const *arguments, Py_ssize_t given);

/* ---- grid.c -------------------------------------------------------------------------------------------------------- */

/* The extents of a grid: an int, a sequence of one to three, or a function from the call's arguments to either. */
bool tt_read_grid(const Kernel *kernel, PyObject *grid, const Call *call, int32_t extents[3]);

/* ---- collector.c: what Python's garbage collector is spared ------------------------------------------------------------ */

/* Until it is woken. False: it rested already, and whoever had it rest wakes it. */
bool tt_rest_collector(State *state);
void tt_wake_collector(State *state);
/* wake_collector(): in a process that was forked while another thread read a program. */
PyObject *tt_wake_collector_in_child(PyObject *module, PyObject *unused);
PyObject *tt_untrack_tree(PyObject *module, PyObject *tree); /* untrack_tree(tree) */

/* ---- compile.c ------------------------------------------------------------------------------------------- */

/* Compiles for a signature and options as in FrontendRequest; NULL with an error set. `standalone`: for callers that
 * launch it by themselves, with nothing but its arguments: the program's own assertions are checked and no bounds, and
 * one that fails on a GPU ends the context. `numbers`: of the launch that it is for, which proves what the code rests on;
 * NULL: the caller vouches for that. `is_quiet`: in the background, where nobody is warned and all others go first. */
Compiled *tt_compile(Kernel *kernel, PyObject *signature, PyObject *options, Target target, bool standalone,
                     const LaunchNumbers *numbers, bool is_quiet);
extern const LaunchNumbers tt_any_launch; /* whatever does not always do with 32 bits takes 64 */
/* Makes the code of one that has none from the bytes of an image. False with an error set. */
bool tt_restore(Compiled *compiled, Bytes image);
/* CompiledKernel._override(stage, text, file). */
PyObject *tt_override(PyObject *self, PyObject *args);
/* The target, the options with their defaults, and the name: what is said of the compiled kernel later. */
PyObject *tt_compilation_info(Kernel *kernel, PyObject *signature, PyObject *options, Target target,
                              bool standalone);

/* ---- triton_c.c -------------------------------------------------------------------------------------------------------- */

/* The kernel by the front end of its language: parse() of a kernel in Triton-C gives its program's text, of one in Python a
 * tree. Raises diagnostics. */
Module *tt_build_kernel(Arena *arena, FrontendRequest *request);

/* ---- view.c: what is asked without compiling --------------------------------------------------------------------------- */

/* view_ir(kernel, signature, options, target): ((name, region), ...) of what the frontend makes, and its text; a region
 * is (number, arguments, operations), an operation (name, operands, results, callee, regions). */
PyObject *tt_view_ir(PyObject *module, PyObject *args);
/* argument_entry(value, is_const, any_value, any_alignment): what a signature has for it. */
PyObject *tt_argument_entry(PyObject *module, PyObject *args);

/* ---- survey.c: variants, before any is compiled ----------------------------------------------------------------------------
 * survey(kernel, signature, options, target, numbers, grid, variants): (work, [facts of each variant]). `numbers` has the
 * values of the run-time parameters that are integers, None for others; `variants` dicts of num_warps, num_stages, maxnreg
 * and choices, which only a GPU's facts depend on. Work is a dict of what analysis.h says of it; facts are shared and
 * registers, choices ({name: (values, own)}), how many requests were not met (remarks), and the failure's message or
 * None. */
PyObject *tt_survey(PyObject *module, PyObject *args);

/* ---- compiled.c ---------------------------------------------------------------------------------------------------------- */

/* Is there code, and is the kernel still there? False with an error set. */
bool tt_has_kernel(const Compiled *compiled);
bool tt_load_compiled(Compiled *compiled); /* onto its device; false with an error set */
/* What of that can be done without holding up launches in other threads, and whether only loading is left then; false with an
 * error set. */
bool tt_prepare_compiled(Compiled *compiled, bool *is_made);
/* Without code yet. */
Compiled *tt_new_compiled(Kernel *kernel, PyObject *info);
extern PyType_Spec tt_compiled_spec;

/* ---- signals.c ------------------------------------------------------------------------------------------------------- */

typedef struct SignalCheck {
    Interrupt interrupt; /* first: its function gets a pointer to it */
    PyThreadState *released;
} SignalCheck;
/* Releases the GIL. What is returned asks Python's handlers of signals whether to end: an exception of theirs says so.
 * NULL in a thread where Python does not handle signals. */
Interrupt *tt_release_gil(SignalCheck *check);
/* False with an exception set if a handler raised one. */
bool tt_take_gil(SignalCheck *check);

/* ---- errors.c -------------------------------------------------------------------------------------------------------- */

/* Sets the exception of triton.errors that shows `diag`. `module` is dumped if it is a bug; may be NULL. */
void tt_set_error(const Diagnostic *diag, const Module *module);
/* Sets the exception for a launch that failed with a message of the target. */
void tt_set_launch_error(const Compiled *compiled, const FailureText *failure);
/* tt_set_error for what came up in a launch: an error of the device is told with the kernel, the grid and the options. */
void tt_set_launch_diagnostic(const Compiled *compiled, const int32_t grid[3], const Diagnostic *diag);
