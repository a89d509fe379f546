/* A libcuda.so.1 without a GPU: it takes everything, launches nothing and keeps all memory on the host.

   Taichi makes machine code of kernels with it as with NVIDIA's own, up to PTX, and LLVM ends the process where it cannot.
   The names of what has come that far go to the file KERNELS. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *P;
#define OK return 0

int cuInit(unsigned flags) { OK; }
int cuDriverGetVersion(int *version) { *version = 13000; OK; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; OK; }
int cuDeviceGetCount(int *count) { *count = 1; OK; }
int cuDeviceGetName(char *name, int length, int device) { snprintf(name, length, "no GPU"); OK; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  switch (attribute) {
    case 75: *value = 9; break;    /* compute capability, major */
    case 76: *value = 0; break;    /* and minor */
    case 16: *value = 132; break;  /* multiprocessors */
    case 10: *value = 32; break;   /* threads of a warp */
    default: *value = 1024;        /* threads of a block; memory pools: yes */
  }
  OK;
}
int cuDeviceGetDefaultMemPool(P *pool, int device) { *pool = (P)1; OK; }
int cuMemPoolSetAttribute(P pool, int attribute, P value) { OK; }

int cuCtxCreate_v2(P *context, unsigned flags, int device) { *context = (P)1; OK; }
int cuDevicePrimaryCtxRetain(P *context, int device) { *context = (P)1; OK; }
int cuCtxSetCurrent(P context) { OK; }
int cuCtxGetCurrent(P *context) { *context = (P)1; OK; }
int cuCtxSetLimit(int limit, size_t value) { OK; }

static int room(P *memory, size_t bytes) { *memory = calloc(1, bytes ? bytes : 1); return *memory == NULL; }
int cuMemAlloc_v2(P *memory, size_t bytes) { return room(memory, bytes); }
int cuMemAllocManaged(P *memory, size_t bytes, unsigned flags) { return room(memory, bytes); }
int cuMemAllocAsync(P *memory, size_t bytes, P stream) { return room(memory, bytes); }
int cuMemFree_v2(P memory) { free(memory); OK; }
int cuMemFreeAsync(P memory, P stream) { free(memory); OK; }
int cuMemGetInfo_v2(size_t *idle, size_t *total) { *idle = *total = (size_t)64 << 30; OK; }
int cuMemAdvise(P memory, size_t bytes, int advice, int device) { OK; }
int cuPointerGetAttribute(int *value, int attribute, P memory) { *value = 2; OK; } /* of a device */

static int copy(P to, P from, size_t bytes) { memcpy(to, from, bytes); OK; }
int cuMemcpyHtoD_v2(P to, P from, size_t bytes) { return copy(to, from, bytes); }
int cuMemcpyDtoH_v2(P to, P from, size_t bytes) { return copy(to, from, bytes); }
int cuMemcpyDtoD_v2(P to, P from, size_t bytes) { return copy(to, from, bytes); }
int cuMemcpyHtoDAsync_v2(P to, P from, size_t bytes, P stream) { return copy(to, from, bytes); }
int cuMemcpyDtoHAsync_v2(P to, P from, size_t bytes, P stream) { return copy(to, from, bytes); }
int cuMemcpyAsync(P to, P from, size_t bytes, P stream) { return copy(to, from, bytes); }
int cuMemsetD8_v2(P memory, unsigned char value, size_t count) { memset(memory, value, count); OK; }
int cuMemsetD32_v2(unsigned *memory, unsigned value, size_t count) {
  while (count--) *memory++ = value;
  OK;
}

int cuModuleLoadDataEx(P *module, P image, unsigned options, P names, P values) { *module = (P)1; OK; }
int cuModuleGetFunction(P *function, P module, const char *name) {
  const char *path = getenv("KERNELS");
  FILE *file = path ? fopen(path, "a") : NULL;
  if (file) {
    fprintf(file, "%s\n", name);
    fclose(file);
  }
  *function = (P)1;
  OK;
}
int cuFuncGetAttribute(int *value, int attribute, P function) { *value = 0; OK; }
int cuFuncSetAttribute(P function, int attribute, int value) { OK; }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, P function, int threads, size_t shared) { *blocks = 2; OK; }
int cuLaunchKernel(P function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, P stream, P *arguments, P *extra) { OK; }

int cuStreamCreate(P *stream, unsigned flags) { *stream = (P)1; OK; }
int cuStreamSynchronize(P stream) { OK; }
int cuEventCreate(P *event, unsigned flags) { *event = (P)1; OK; }
int cuEventDestroy(P event) { OK; }
int cuEventRecord(P event, P stream) { OK; }
int cuEventSynchronize(P event) { OK; }
int cuEventElapsedTime(float *time, P begin, P end) { *time = 0.0f; OK; }
int cuGetErrorName(int error, const char **text) { *text = "?"; OK; }
int cuGetErrorString(int error, const char **text) { *text = "?"; OK; }

/* Of windows, which nothing here has. */
int cuImportExternalMemory(P memory, P description) { return 1; }
int cuImportExternalSemaphore(P semaphore, P description) { return 1; }
int cuExternalMemoryGetMappedBuffer(P buffer, P memory, P description) { return 1; }
int cuExternalMemoryGetMappedMipmappedArray(P array, P memory, P description) { return 1; }
int cuMipmappedArrayGetLevel(P level, P array, unsigned index) { return 1; }
int cuSignalExternalSemaphoresAsync(P semaphores, P parameters, unsigned count, P stream) { return 1; }
int cuWaitExternalSemaphoresAsync(P semaphores, P parameters, unsigned count, P stream) { return 1; }
int cuSurfObjectCreate(P surface, P description) { return 1; }
