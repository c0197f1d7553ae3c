package rig

import "syscall"

const continued = syscall.SIGCONT
