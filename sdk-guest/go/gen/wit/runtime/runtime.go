//go:build wasip1

// Package runtime has the functions by which the generated bindings share memory with the host.
package runtime

import (
	"runtime"
	"runtime/debug"
	"unsafe"
)

// Handle is the number by which the host identifies a resource; 0 after its ownership was transferred.
type Handle struct{ number int32 }

func MakeHandle(number int32) *Handle { return &Handle{number} }

func (h *Handle) Use() int32 {
	if h.number == 0 {
		panic("a resource of the host is used after its ownership was transferred")
	}
	return h.number
}

func (h *Handle) Take() int32 {
	number := h.Use()
	h.number = 0
	return number
}

func (h *Handle) TakeOrNil() int32 {
	number := h.number
	h.number = 0
	return number
}

func (h *Handle) Set(number int32) { h.number = number }

// Allocate returns memory that does not move until the pinner unpins it.
func Allocate(pinner *runtime.Pinner, size, align uintptr) unsafe.Pointer {
	if size == 0 {
		return nil
	}
	// Words of eight bytes satisfy the alignment of every type of the contract.
	words := make([]uint64, (size+7)/8)
	memory := unsafe.Pointer(unsafe.SliceData(words))
	pinner.Pin(memory)
	return memory
}

// written pins memory that the host wrote: the arguments of the call, and results of imports.
var written runtime.Pinner

// Unpin unpins the memory that the host wrote, after it was read.
func Unpin() { written.Unpin() }

// The WASI adapter allocates memory before Go's own allocator is initialized, so the first allocations come from here.
var (
	early   [3 << 16]byte
	used    uintptr
	isReady bool
)

// realloc allocates memory for values that the host passes. The host calls it, and no import may be called before it returns. But Go's
// garbage collector asks for the time, which is an import. So the collector is off whenever the host may call this function, and for
// other uses of the clock the adapter returns the last time that it knows.
//
//go:wasmexport cabi_realloc
func realloc(old unsafe.Pointer, oldSize, align, size uintptr) unsafe.Pointer {
	if old != nil {
		panic("the host tries to grow an allocation")
	}
	if !isReady {
		start := uintptr(unsafe.Pointer(&early))
		at := (start+used+align-1)&^(align-1) - start
		if at+size > uintptr(len(early)) {
			panic("the memory for allocations before Go's start is too small")
		}
		used = at + size
		return unsafe.Pointer(&early[at])
	}
	pauseClock(1)
	memory := Allocate(&written, size, align)
	pauseClock(0)
	return memory
}

//go:wasmimport wasi_snapshot_preview1 adapter_monotonic_clock_set_paused
func pauseClock(paused int32)

// growth is the percentage by which the heap grows before garbage is collected: Go's default, or GOGC.
var growth int

func init() {
	growth = debug.SetGCPercent(-1)
	isReady = true
}

// Collecting runs a function, the author's code, with the garbage collector on.
func Collecting[T any](run func() T) T {
	debug.SetGCPercent(growth)
	// Switching the collector off waits for the end of a running collection.
	defer debug.SetGCPercent(-1)
	return run()
}

// Receiving runs an import whose result the host may allocate by realloc, with the collector off. The result refers to that memory.
func Receiving[T any](run func() T) T {
	before := debug.SetGCPercent(-1)
	result := run()
	Unpin()
	debug.SetGCPercent(before)
	return result
}
