/* A file system that is read-only from one moment to the next, for one process: preloaded, while READ_ONLY_WHILE exists,
 * whoever writes below READ_ONLY_BELOW is told so by the system call, with files that are open already, too. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int below(const char *path) {
    const char *root = getenv("READ_ONLY_BELOW"), *flag = getenv("READ_ONLY_WHILE");
    return root && flag && path && strncmp(path, root, strlen(root)) == 0 && access(flag, F_OK) == 0;
}

static int open_below(int file) {
    char link[64], path[4096];
    const char *flag = getenv("READ_ONLY_WHILE");
    if (!flag || access(flag, F_OK) != 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return below(path);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define REFUSE do { errno = EROFS; return -1; } while (0)
#define WRITES(flags) (((flags) & O_ACCMODE) != O_RDONLY || ((flags) & (O_CREAT | O_TRUNC)))
#define OPEN(name) int name(const char *path, int flags, ...) { \
    va_list more; va_start(more, flags); mode_t mode = va_arg(more, int); va_end(more); \
    if (WRITES(flags) && below(path)) REFUSE; \
    return NEXT(name)(path, flags, mode); }
OPEN(open)
OPEN(open64)
#define OPENAT(name) int name(int folder, const char *path, int flags, ...) { \
    va_list more; va_start(more, flags); mode_t mode = va_arg(more, int); va_end(more); \
    if (WRITES(flags) && below(path)) REFUSE; \
    return NEXT(name)(folder, path, flags, mode); }
OPENAT(openat)
OPENAT(openat64)
ssize_t write(int file, const void *bytes, size_t count) { if (open_below(file)) REFUSE; return NEXT(write)(file, bytes, count); }
ssize_t pwrite(int file, const void *bytes, size_t count, off_t at) { if (open_below(file)) REFUSE; return NEXT(pwrite)(file, bytes, count, at); }
ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t at) { if (open_below(file)) REFUSE; return NEXT(pwrite64)(file, bytes, count, at); }
int ftruncate(int file, off_t size) { if (open_below(file)) REFUSE; return NEXT(ftruncate)(file, size); }
int ftruncate64(int file, off64_t size) { if (open_below(file)) REFUSE; return NEXT(ftruncate64)(file, size); }
int mkdir(const char *path, mode_t mode) { if (below(path)) REFUSE; return NEXT(mkdir)(path, mode); }
int unlink(const char *path) { if (below(path)) REFUSE; return NEXT(unlink)(path); }
int rename(const char *from, const char *to) { if (below(from) || below(to)) REFUSE; return NEXT(rename)(from, to); }
int link(const char *from, const char *to) { if (below(to)) REFUSE; return NEXT(link)(from, to); }
