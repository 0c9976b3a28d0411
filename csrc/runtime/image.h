/* image: a compiled kernel as plain data, apart from the handles (code.h) that one process makes of it. As bytes it is
 * what the disk cache, pickles, ahead-of-time output and compilations in the background pass on. */
#pragma once
#include "analysis/ranges.h"
#include "cache/seal.h"
#include "gpu/tensor_map.h"
#include "ir/ir.h"

typedef enum TargetKind { TARGET_CPU, TARGET_CUDA, TARGET_SIM, TARGET_KINDS } TargetKind;
typedef struct Target {
    TargetKind kind;
    int sm; /* compute capability, 90 for 9.0; 0 on the CPU */
} Target;

/* "cpu", "cuda:90", "sim:90". False when it is none; a sm of 0 in "cuda" is for the caller to fill in. */
bool tt_target_parse(const char *name, Target *target);
const char *tt_target_name(Target target, char out[16]);

/* Whether a kernel's blocks may be set up before the kernel in front of it in the stream has ended (programmatic dependent
 * launch; compute capability 9.0). It always waits for that one's end before it touches memory. */
typedef enum EarlyLaunch {
    EARLY_IF_POSSIBLE, /* tt_complete_options() decides between the next two */
    EARLY_NEVER,
    EARLY,           /* it waits first of all */
    EARLY_AS_WRITTEN /* the program asked for it: it waits where the program says so, else first of all */
} EarlyLaunch;

/* What decides the code of a kernel beside its tile IR. */
typedef struct CodeOptions {
    Target target;
    int num_warps, num_stages, num_ctas;
    int max_registers; /* a thread; 0: no limit asked for */
    bool debug;        /* assertions are checked */
    bool traps; /* one that fails on CUDA ends the context; the kernel has no parameter for a record of it */
    bool no_fusion;      /* a product and a sum are never one fma unless the program says so */
    bool cooperative;    /* all programs run at the same time, or the launch fails */
    EarlyLaunch early;   /* CUDA */
    bool deepens;        /* GPUs: loops load further ahead in launches of few programs */
    int left_out;        /* GpuOptions.left_out; only tests set it */
    const char *choices; /* GPUs: Module.asked_choices */
    /* of the machine and the environment: see tt_complete_options */
    int ptx_version;       /* CUDA: the newest that the driver takes, 83 for PTX 8.3; 0: nobody knows */
    uint64_t padding;      /* simulator: GpuOptions.padding */
    const char *machine;   /* CPU and simulator: the host that the code is for */
    const char *libraries; /* CUDA: where libdevice is to be found, if the environment says */
} CodeOptions;
/* Fills in what the options do not say: of the device, of this machine, and of the environment. */
void tt_complete_options(CodeOptions *options, Arena *arena);
void tt_hash_options(Hasher *hasher, const CodeOptions *options);

typedef struct ImageArray {
    const char *name; /* "the array 'x'" */
    int64_t element_bytes;
} ImageArray;

typedef struct Image {
    CodeOptions options;
    const char *name;     /* of the entry */
    const char *source;   /* tile IR with its places: tt_make_image makes the same of it */
    Bytes code;           /* an object file of the host, or PTX */
    size_t code_size;     /* simulator: bytes of machine code from the entry on */
    const bool *stored;   /* for each parameter: is it a pointer that is stored through? */
    const bool *order;    /* likewise: see tt_analyze_order; or NULL */
    int parameter_count;  /* of the tile IR; each one a slot of 64 bits */
    unsigned rests_on;    /* LaunchFacts; offsets are computed in 64 bits if FACT_FITS is none of them */
    RangeProgram *checks; /* which hold for a launch; NULL: all do, for each */
    int64_t memory;       /* bytes of fast memory that a program keeps */
    bool streams;         /* CPU: see CpuImage */
    float stored_bytes;
    int stack_bytes, synchronisations; /* simulator: see SimKernel */
    int effort;                        /* CUDA: see GpuKernel */
    Failure *failures;                 /* CUDA, debug: see GpuKernel */
    int failure_count;
    TensorMap *maps; /* CUDA: see GpuKernel; `checks` is not NULL where there are any */
    int map_count;
    const Loc *assembly; /* CUDA: the first place where the program brings its own, or NULL */
    ImageArray *arrays;  /* simulator: behind the pointers among the parameters, in their order */
    int array_count;
    Remark *remarks; /* for the user */
    int remark_count;
    double
        lowering_milliseconds; /* of the time that compiling took; the rest was LLVM's. 0 for one that was read */
} Image;

/* From tile IR that the machine-independent pipeline has seen. Raises diagnostics. The module is changed, and not needed
 * afterwards; the image is in `arena`. */
Image *tt_make_image(Module *module, const CodeOptions *options, Arena *arena);
/* Text of a stage that is made from the source again, in `arena`: "ttir", "ttgir", "llir", "asm"; "ptx" is the code.
 * "ttir+loc" and "ttgir+loc" have the place of each operation, too, "asm+loc" that of reads and writes, numbers of the
 * places at its end. NULL for a stage that the target has not. */
const char *tt_image_text(const Image *image, const char *stage, Arena *arena);

/* Sealed, in `arena`. */
Bytes tt_image_bytes(const Image *image, const Digest *key, Arena *arena);
/* What points into `bytes` and `arena`; NULL if that is no image of this key (NULL: of any). */
Image *tt_read_image(Bytes bytes, const Digest *key, Arena *arena);
/* Whether its code runs on this machine; PTX does wherever a driver takes it. */
bool tt_image_fits(const Image *image);
