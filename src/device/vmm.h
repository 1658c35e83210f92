/* device/vmm.h -- device memory that crosses processes as file descriptors.
 *
 * The CUDA driver by dlopen: no toolkit is needed to build this. Used by the runner
 * (linked) and by the worker (libca_device.so through ctypes), so calls take and
 * return plain numbers: 0 is success, anything else is the driver's CUresult, -1 a
 * missing driver. vmm_error() gives the text. Works in the primary context, the one
 * that torch and the CUDA runtime use.
 * Threads: the caller's context is thread-bound as CUDA's is; use one thread.
 */
#ifndef DEVICE_VMM_H
#define DEVICE_VMM_H

#include <stddef.h>
#include <stdint.h>

typedef struct CUstream_st *vmm_stream;
typedef struct CUevent_st *vmm_event;

/* Load the driver, retain the primary context of the ordinal, make it current. */
int vmm_open(int ordinal);

/* Make vmm_open's context the calling thread's, too. */
int vmm_enter(void);

/* bytes: a multiple of vmm_granularity(). shared: may be exported (POSIX descriptor);
 * otherwise no handle of it can ever be had by another process. */
size_t vmm_granularity(void);
int vmm_alloc(size_t bytes, int shared, uint64_t *ret_address, uint64_t *ret_handle);
int vmm_export(uint64_t handle, int *ret_fd); /* the caller closes it */
int vmm_import(int fd, size_t bytes, uint64_t *ret_address, uint64_t *ret_handle);
int vmm_free(uint64_t address, size_t bytes, uint64_t handle);

/* Plain allocations for scratch and keep. */
int vmm_plain_alloc(size_t bytes, uint64_t *ret_address);
int vmm_plain_free(uint64_t address);
int vmm_fill(uint64_t address, unsigned char value, size_t bytes);

int vmm_sm_count(void);
int vmm_stream_create(vmm_stream *ret);
int vmm_event_create(vmm_event *ret);
int vmm_event_record(vmm_event e, vmm_stream s);
int vmm_event_ms(vmm_event from, vmm_event to, float *ret_ms);
int vmm_synchronize(void); /* everything in the context */

const char *vmm_error(int code); /* static text, never NULL */

#endif
