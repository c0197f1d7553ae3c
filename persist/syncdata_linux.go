package persist

import (
	"os"
	"syscall"
)

// syncData makes what was written to a file durable. Times do not matter, and without them
// the file system has nothing to write of a file whose size stays what it is.
func syncData(file *os.File) error {
	return os.NewSyscallError("fdatasync", syscall.Fdatasync(int(file.Fd())))
}
