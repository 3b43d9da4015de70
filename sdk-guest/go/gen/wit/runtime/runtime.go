//go:build wasip1

// Package runtime is what the generated bindings need to share memory with the host.
package runtime

import (
	"runtime"
	"runtime/debug"
	"unsafe"
)

// Handle is the number by which the host knows a resource; 0 once it was given away.
type Handle struct{ number int32 }

func MakeHandle(number int32) *Handle { return &Handle{number} }

func (h *Handle) Use() int32 {
	if h.number == 0 {
		panic("a resource of the host is used after it was given away")
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

// Allocate returns memory that stays where it is until the pinner lets go of it.
func Allocate(pinner *runtime.Pinner, size, align uintptr) unsafe.Pointer {
	if size == 0 {
		return nil
	}
	// Words of eight bytes are aligned for every type of the contract.
	words := make([]uint64, (size+7)/8)
	memory := unsafe.Pointer(unsafe.SliceData(words))
	pinner.Pin(memory)
	return memory
}

// What the host has written for this side: the arguments of the call, and results of imports.
var written runtime.Pinner

// Unpin lets go of what the host has written, after it was read.
func Unpin() { written.Unpin() }

// The adapter of WASI takes its memory before Go's own allocator is there, so the first pieces come from here.
var (
	early   [3 << 16]byte
	used    uintptr
	isReady bool
)

// The host calls this to make room for what it passes. No import may be called meanwhile; but to collect garbage, Go asks for the
// time. So the collector is off whenever the host may call this, and for the rest the adapter answers with the time that it knows.
//
//go:wasmexport cabi_realloc
func realloc(old unsafe.Pointer, oldSize, align, size uintptr) unsafe.Pointer {
	if old != nil {
		panic("the host does not grow what it has written")
	}
	if !isReady {
		start := uintptr(unsafe.Pointer(&early))
		at := (start+used+align-1)&^(align-1) - start
		if at+size > uintptr(len(early)) {
			panic("the memory for the start is too small")
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

// How much the heap grows before garbage is collected, as Go has it by default or GOGC says.
var growth int

func init() {
	growth = debug.SetGCPercent(-1)
	isReady = true
}

// Collecting runs a function with the collector on: the author's code.
func Collecting[T any](run func() T) T {
	debug.SetGCPercent(growth)
	// To switch it off waits for the end of a collection that is under way.
	defer debug.SetGCPercent(-1)
	return run()
}

// Receiving runs an import for which the host may make room, with the collector off. What it returns refers to that room.
func Receiving[T any](run func() T) T {
	before := debug.SetGCPercent(-1)
	result := run()
	Unpin()
	debug.SetGCPercent(before)
	return result
}
