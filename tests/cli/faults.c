// Loaded before all other libraries: calls of the system that fail when they are asked to.
//
// Only calls on files and folders inside of one folder are counted.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static char watched[4096];
static int number;
static bool reads;
static atomic_long left = -1;
static const char* _Atomic failed;

// The call after so many others inside of a folder fails with an error, once; calls that only look
// at files count if they are asked for.
void fail_after(const char* folder, long calls, int error, int reading) {
    reads = reading != 0;
    snprintf(watched, sizeof watched, "%s", folder);
    failed = NULL;
    number = error;
    left = calls;
}

// The name of the call that failed; null if none did. No other one fails.
const char* failed_call(void) {
    left = -1;
    return failed;
}

static bool is_inside(const char* path) {
    return path != NULL && strncmp(path, watched, strlen(watched)) == 0;
}

static bool is_open_inside(int file) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = '\0';
    return is_inside(path);
}

static bool is_below(int folder, const char* path) {
    return path[0] == '/' || folder == AT_FDCWD ? is_inside(path) : is_open_inside(folder);
}

// Whether this call, which counts, is the one that fails.
static bool fails(const char* name) {
    if (atomic_fetch_sub(&left, 1) != 0) return false;
    failed = name;
    errno = number;
    return true;
}

#define NEXT(type, name, parameters)                   \
    static type(*call) parameters;                     \
    if (call == NULL) call = (type(*) parameters)dlsym(RTLD_NEXT, #name)

#define CALL(type, name, parameters, arguments, counts)           \
    type name parameters {                                        \
        NEXT(type, name, parameters);                             \
        return left >= 0 && counts && fails(#name) ? -1 : call arguments; \
    }

#define OPEN(name)                                                              \
    int name(const char* path, int flags, ...) {                                \
        NEXT(int, name, (const char*, int, ...));                               \
        va_list more;                                                           \
        va_start(more, flags);                                                  \
        const mode_t mode = va_arg(more, mode_t);                               \
        va_end(more);                                                           \
        return left >= 0 && is_inside(path) && fails("open") ? -1 : call(path, flags, mode); \
    }

#define OPEN_AT(name)                                                           \
    int name(int folder, const char* path, int flags, ...) {                    \
        NEXT(int, name, (int, const char*, int, ...));                          \
        va_list more;                                                           \
        va_start(more, flags);                                                  \
        const mode_t mode = va_arg(more, mode_t);                               \
        va_end(more);                                                           \
        const bool counts = left >= 0 && is_below(folder, path);                \
        return counts && fails("open") ? -1 : call(folder, path, flags, mode);  \
    }

OPEN(open)
OPEN(open64)
OPEN_AT(openat)
OPEN_AT(openat64)

// A file is closed even where that fails.
int close(int file) {
    NEXT(int, close, (int));
    const bool counts = left >= 0 && is_open_inside(file);
    const int result = call(file);
    return counts && fails("close") ? -1 : result;
}

// Returns its error.
int posix_fallocate64(int file, off64_t start, off64_t size) {
    NEXT(int, posix_fallocate64, (int, off64_t, off64_t));
    const bool counts = left >= 0 && is_open_inside(file);
    return counts && fails("posix_fallocate") ? number : call(file, start, size);
}

// Lists a folder.
DIR* opendir(const char* path) {
    NEXT(DIR*, opendir, (const char*));
    return left >= 0 && is_inside(path) && fails("opendir") ? NULL : call(path);
}

// Reads a folder that was opened; null is its end, too.
struct dirent64* readdir64(DIR* folder) {
    NEXT(struct dirent64*, readdir64, (DIR*));
    return left >= 0 && reads && is_open_inside(dirfd(folder)) && fails("readdir") ? NULL : call(folder);
}

void* mmap64(void* at, size_t size, int rights, int flags, int file, off64_t start) {
    NEXT(void*, mmap64, (void*, size_t, int, int, int, off64_t));
    const bool counts = left >= 0 && reads && file >= 0 && is_open_inside(file);
    return counts && fails("mmap") ? MAP_FAILED : call(at, size, rights, flags, file, start);
}

typedef struct stat64* Found;
typedef const char* Path;
typedef const void* Data;

CALL(ssize_t, write, (int f, Data data, size_t size), (f, data, size), is_open_inside(f))
CALL(ssize_t, pwrite64, (int f, Data data, size_t n, off64_t at), (f, data, n, at), is_open_inside(f))
CALL(int, ftruncate64, (int f, off64_t size), (f, size), is_open_inside(f))
CALL(int, fsync, (int f), (f), is_open_inside(f))
CALL(ssize_t, copy_file_range, (int s, off64_t* at, int f, off64_t* to, size_t n, unsigned flags),
     (s, at, f, to, n, flags), is_open_inside(f))
CALL(ssize_t, sendfile64, (int f, int s, off64_t* at, size_t n), (f, s, at, n), is_open_inside(f))
CALL(int, mkdir, (Path path, mode_t mode), (path, mode), is_inside(path))
CALL(int, rmdir, (Path path), (path), is_inside(path))
CALL(int, unlink, (Path path), (path), is_inside(path))
CALL(int, unlinkat, (int folder, Path path, int flags), (folder, path, flags),
     is_below(folder, path))
CALL(int, rename, (Path path, Path target), (path, target), is_inside(path))
CALL(int, renameat2, (int folder, Path path, int into, Path target, unsigned flags),
     (folder, path, into, target, flags), is_below(folder, path))
CALL(int, link, (Path source, Path path), (source, path), is_inside(path))
CALL(ssize_t, read, (int f, void* data, size_t size), (f, data, size), reads && is_open_inside(f))
CALL(ssize_t, pread64, (int f, void* data, size_t n, off64_t at), (f, data, n, at),
     reads && is_open_inside(f))
CALL(int, stat64, (Path path, Found found), (path, found), reads && is_inside(path))
CALL(int, lstat64, (Path path, Found found), (path, found), reads && is_inside(path))
CALL(int, fstat64, (int f, Found found), (f, found), reads && is_open_inside(f))
CALL(int, fstatat64, (int folder, Path path, Found found, int flags), (folder, path, found, flags),
     reads && is_below(folder, path))
CALL(int, chmod, (Path path, mode_t mode), (path, mode), reads && is_inside(path))
CALL(int, chown, (Path path, uid_t user, gid_t group), (path, user, group), reads && is_inside(path))
CALL(int, setxattr, (Path path, Path name, Data value, size_t size, int flags),
     (path, name, value, size, flags), reads && is_inside(path))
CALL(ssize_t, getxattr, (Path path, Path name, void* value, size_t size), (path, name, value, size),
     reads && is_inside(path))
CALL(ssize_t, listxattr, (Path path, char* names, size_t size), (path, names, size),
     reads && is_inside(path))
CALL(int, flock, (int f, int how), (f, how), reads && is_open_inside(f))
CALL(ssize_t, readlink, (Path path, char* target, size_t size), (path, target, size),
     reads && is_inside(path))
