/* Broken artifacts: copies of a good one in which something was changed. */
#ifndef NEML2_CAPI_TESTS_FILES_H
#define NEML2_CAPI_TESTS_FILES_H

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

#if defined(_WIN32)
static inline int make_folder(const char *path) { return mkdir(path); }
#else
static inline int make_folder(const char *path) { return mkdir(path, 0700); }
#endif

static inline void files_failed(const char *what, const char *path) {
  fprintf(stderr, "cannot %s %s\n", what, path);
  exit(1);
}

static inline const char *join_path(const char *folder, const char *name) {
  static char paths[4][PATH_SIZE]; /* a few may be in use at once */
  static int next;
  char *path = paths[next = (next + 1) % 4];
  if (snprintf(path, PATH_SIZE, "%s/%s", folder, name) >= PATH_SIZE) files_failed("name", name);
  return path;
}

/* The bytes of a file, with a zero behind them; the caller frees them. */
static inline char *read_bytes(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  struct stat status;
  if (!file || fstat(fileno(file), &status) != 0) files_failed("read", path);
  *size = (size_t)status.st_size;
  char *bytes = calloc(*size + 1, 1);
  if (!bytes || fread(bytes, 1, *size, file) != *size) files_failed("read", path);
  fclose(file);
  return bytes;
}

static inline void write_bytes(const char *path, const char *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) files_failed("write", path);
}

/* Apply `visit` to every file below `folder`, deepest first, then to the folder itself. */
static inline void walk(const char *folder, void (*visit)(const char *path)) {
  DIR *entries = opendir(folder);
  if (!entries) {
    visit(folder);
    return;
  }
  for (struct dirent *entry; (entry = readdir(entries));) {
    char path[PATH_SIZE];
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= PATH_SIZE) files_failed("name", folder);
    walk(path, visit);
  }
  closedir(entries);
  visit(folder);
}

static inline void remove_one(const char *path) {
  if (remove(path) != 0 && rmdir(path) != 0) files_failed("remove", path); /* Windows removes files alone */
}
static inline void remove_folder(const char *folder) { walk(folder, remove_one); }

static inline void copy_folder(const char *from, const char *to) {
  DIR *entries = opendir(from);
  if (!entries || make_folder(to) != 0) files_failed("copy", from);
  for (struct dirent *entry; (entry = readdir(entries));) {
    char source[PATH_SIZE], target[PATH_SIZE];
    struct stat status;
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (snprintf(source, sizeof source, "%s/%s", from, entry->d_name) >= PATH_SIZE ||
        snprintf(target, sizeof target, "%s/%s", to, entry->d_name) >= PATH_SIZE || stat(source, &status) != 0)
      files_failed("copy", entry->d_name);
    if (S_ISDIR(status.st_mode)) {
      copy_folder(source, target);
    } else {
      size_t size;
      char *bytes = read_bytes(source, &size);
      write_bytes(target, bytes, size);
      free(bytes);
    }
  }
  closedir(entries);
}

/* A copy of `root` in a new folder, to be removed with remove_copy(). */
static inline const char *copy_of(const char *root) {
  static char copy[PATH_SIZE];
  const char *temporary = getenv("TMPDIR");
  snprintf(copy, sizeof copy, "%s/neml2_capi.XXXXXX", temporary ? temporary : "/tmp");
  if (!mkdtemp(copy)) files_failed("create", copy);
  strcat(copy, "/artifact");
  copy_folder(root, copy);
  return copy;
}

static inline void remove_copy(const char *copy) {
  char folder[PATH_SIZE];
  snprintf(folder, sizeof folder, "%s", copy);
  *strrchr(folder, '/') = 0;
  remove_folder(folder);
}

/* Replace the first `before` in a text file by `after`. */
static inline void replace_text(const char *path, const char *before, const char *after) {
  size_t size;
  char *text = read_bytes(path, &size), *at = strstr(text, before);
  if (!at) files_failed("edit", path);
  char *edited = calloc(size + strlen(after) + 1, 1);
  if (!edited) exit(1);
  memcpy(edited, text, (size_t)(at - text));
  strcat(edited, after);
  strcat(edited, at + strlen(before));
  write_bytes(path, edited, strlen(edited));
  free(edited);
  free(text);
}

static inline uint32_t crc32_of(const unsigned char *bytes, size_t size) {
  uint32_t crc = 0xffffffffu;
  for (size_t i = 0; i < size; ++i) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (0xedb88320u & (0u - (crc & 1u)));
  }
  return ~crc;
}

static inline uint32_t little_endian(const unsigned char *at, int bytes) {
  uint32_t value = 0;
  for (int i = bytes; i-- > 0;) value = value << 8 | at[i];
  return value;
}

static inline void put_crc(unsigned char *at, uint32_t crc) {
  for (int i = 0; i < 4; ++i) at[i] = (unsigned char)(crc >> 8 * i);
}

/* Replace `before` by `after`, of the same length, in every stored entry of a zip whose name ends with `suffix`, and
 * mend the entry's checksum, so that the content is the only thing that is wrong. Returns the number of changes. */
static inline int patch_archive(const char *path, const char *suffix, const char *before, const char *after) {
  enum { CENTRAL_HEADER = 46, LOCAL_HEADER = 30, END_HEADER = 22 };
  size_t size, length = strlen(before), suffix_length = strlen(suffix);
  unsigned char *bytes = (unsigned char *)read_bytes(path, &size), *end = bytes + size - END_HEADER;
  int changes = 0;
  if (length != strlen(after)) files_failed("patch", before);
  while (memcmp(end, "PK\5\6", 4) != 0) --end;
  unsigned char *entry = bytes + little_endian(end + 16, 4);
  for (uint32_t i = 0, n = little_endian(end + 10, 2); i < n; ++i) {
    const uint32_t name_length = little_endian(entry + 28, 2);
    const char *name = (const char *)entry + CENTRAL_HEADER;
    unsigned char *local = bytes + little_endian(entry + 42, 4);
    unsigned char *data = local + LOCAL_HEADER + little_endian(local + 26, 2) + little_endian(local + 28, 2);
    const uint32_t data_size = little_endian(entry + 20, 4);
    if (name_length >= suffix_length && memcmp(name + name_length - suffix_length, suffix, suffix_length) == 0) {
      const int before_this = changes;
      for (uint32_t k = 0; k + length <= data_size; ++k)
        if (memcmp(data + k, before, length) == 0) {
          memcpy(data + k, after, length);
          ++changes;
        }
      if (changes > before_this) {
        const uint32_t crc = crc32_of(data, data_size);
        put_crc(entry + 16, crc);
        put_crc(local + 14, crc);
      }
    }
    entry += CENTRAL_HEADER + name_length + little_endian(entry + 30, 2) + little_endian(entry + 32, 2);
  }
  write_bytes(path, (char *)bytes, size);
  free(bytes);
  return changes;
}

#endif
