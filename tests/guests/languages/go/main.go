// The fixture that the official conformance suite expects on a server, and after it the tools that test each ability.
package main

// In the order in which they are listed: the suite calls the first tool without arguments and reads the first resource.
func init() {
	addPlain()
	addAsking()
	addTasks()
	addAbilities()
	addResources()
	addPrompts()
}

func main() {}

// None is the arguments type of a tool without arguments.
type None struct{}

// One red dot.
const png = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00\x90wS\xde\x00\x00\x00\x0cIDATx\xda" +
	"c\xf8\xcf\xc0\x00\x00\x03\x01\x01\x00\xf7\x03AC\x00\x00\x00\x00IEND\xaeB`\x82"

// Four samples of silence at 8 kHz.
const wav = "RIFF(\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00@\x1f\x00\x00@\x1f\x00\x00\x01\x00\x08\x00data\x04\x00\x00\x00" +
	"\x80\x80\x80\x80"
