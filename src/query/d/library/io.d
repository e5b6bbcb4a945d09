/* SPDX-License-Identifier: Apache-2.0 */
/* Block I/O and open files: bufinfo_t, devinfo_t and fileinfo_t. */
inline int B_BUSY = 0x00000001;
inline int B_DONE = 0x00000002;
inline int B_ERROR = 0x00000004;
inline int B_PAGEIO = 0x00000010;
inline int B_PHYS = 0x00000020;
inline int B_READ = 0x00000040;
inline int B_WRITE = 0x00000100;
inline int B_ASYNC = 0x00000400;

inline int O_ACCMODE = 3;
inline int O_RDONLY = 0;
inline int O_WRONLY = 1;
inline int O_RDWR = 2;
inline int O_CREAT = 0x40;
inline int O_EXCL = 0x80;
inline int O_NOCTTY = 0x100;
inline int O_TRUNC = 0x200;
inline int O_APPEND = 0x400;
inline int O_NONBLOCK = 0x800;
inline int O_NDELAY = 0x800;
inline int O_DSYNC = 0x1000;
inline int O_SYNC = 0x101000;
inline int O_RSYNC = 0x101000;

typedef struct bufinfo {
  int b_flags;
  size_t b_bcount;
  uintptr_t b_addr;
  uint64_t b_lblkno;
  uint64_t b_blkno;
  size_t b_resid;
  size_t b_bufsize;
  uintptr_t b_iodone;
  int b_error;
  uint32_t b_edev;
} bufinfo_t;

typedef struct devinfo {
  int dev_major;
  int dev_minor;
  int dev_instance;
  string dev_name;
  string dev_statname;
  string dev_pathname;
} devinfo_t;

typedef struct fileinfo {
  string fi_name;
  string fi_dirname;
  string fi_pathname;
  int64_t fi_offset;
  string fi_fs;
  string fi_mount;
  int fi_oflags;
} fileinfo_t;

/* Operations with an odd number write (enum req_op, blk_types.h); bit 11 is REQ_SYNC. */
translator bufinfo_t < struct bio *B > {
  b_flags = ((B->bi_opf & 1) != 0 ? B_WRITE : B_READ) | B_PAGEIO |
            ((B->bi_opf & 0x800) != 0 ? 0 : B_ASYNC) | (B->bi_status != 0 ? B_ERROR : 0);
  b_bcount = B->bi_iter.bi_size;
  b_addr = (uintptr_t) B->bi_io_vec;
  b_lblkno = B->bi_iter.bi_sector;
  b_blkno = B->bi_iter.bi_sector;
  b_resid = 0;
  b_bufsize = B->bi_iter.bi_size;
  b_iodone = (uintptr_t) B->bi_end_io;
  b_error = B->bi_status;
  b_edev = B->bi_bdev == NULL ? 0 : B->bi_bdev->bd_dev;
};

translator devinfo_t < struct bio *B > {
  dev_major = B->bi_bdev == NULL ? 0 : B->bi_bdev->bd_dev >> 20;
  dev_minor = B->bi_bdev == NULL ? 0 : B->bi_bdev->bd_dev & 0xfffff;
  dev_instance = 0;
  dev_name = B->bi_bdev == NULL ? "<none>" : stringof(B->bi_bdev->bd_disk->disk_name);
  dev_statname = B->bi_bdev == NULL ? "<none>" : stringof(B->bi_bdev->bd_disk->disk_name);
  dev_pathname =
      B->bi_bdev == NULL ? "<none>" : strjoin("/dev/", B->bi_bdev->bd_disk->disk_name);
};

/* The request does not know whose data it carries. */
translator fileinfo_t < struct bio *B > {
  fi_name = "<unknown>";
  fi_dirname = "<unknown>";
  fi_pathname = "<unknown>";
  fi_offset = 0;
  fi_fs = "<unknown>";
  fi_mount = "<unknown>";
  fi_oflags = 0;
};

translator fileinfo_t < struct file *F > {
  fi_name = F == NULL ? "<none>" : stringof(F->f_path.dentry->d_name.name);
  fi_dirname = F == NULL ? "<none>" : dirname(d_path(&F->f_path));
  fi_pathname = F == NULL ? "<none>" : d_path(&F->f_path);
  fi_offset = F == NULL ? 0 : F->f_pos;
  fi_fs = F == NULL ? "<none>" : stringof(F->f_inode->i_sb->s_type->name);
  fi_mount = F == NULL ? "<none>" : "<unknown>";
  fi_oflags = F == NULL ? 0 : F->f_flags;
};

inline fileinfo_t fds[int fd] = xlate <fileinfo_t>(
    fd >= 0 && fd < curthread->files->fdt->max_fds ? curthread->files->fdt->fd[fd] : NULL);
