package main

import (
	crypto "crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"os"
	"time"

	"wharf"
)

type Path struct {
	Path string `json:"path"`
}

type Fetch struct {
	URL      string `json:"url"`
	Variable string `json:"variable,omitempty" description:"The environment variable whose value is sent as authorization."`
}

type How struct {
	How string `json:"how" enum:"throws,returns"`
}

// Abilities of a plugin in addition to answering, with one tool for each.
func addAbilities() {
	wharf.Tool("ability_config", "The plugin's config.", func(*wharf.Call, None) (string, error) {
		var config json.RawMessage
		err := wharf.Config(&config)
		return string(config), err
	})
	wharf.Tool("ability_directories", "The directories that are open.", func(*wharf.Call, None) (string, error) {
		text, err := json.Marshal(wharf.Directories())
		return string(text), err
	})
	wharf.Tool("ability_read", "The text of a file.", func(_ *wharf.Call, args Path) (string, error) {
		text, err := os.ReadFile(args.Path)
		return string(text), err
	})
	wharf.Tool("ability_fetch", "What is at a URL.", fetch)
	wharf.Tool("ability_chance", "What differs from call to call.", chance)
	wharf.Tool("ability_fails", "Fails.", func(_ *wharf.Call, args How) (string, error) {
		if args.How == "throws" {
			panic("it broke")
		}
		return "", errors.New("It did not work out.")
	})
}

func fetch(_ *wharf.Call, args Fetch) (string, error) {
	request := wharf.Request{URL: args.URL}
	if args.Variable != "" {
		request.Headers = []wharf.Header{{Name: "authorization", Value: os.Getenv(args.Variable)}}
	}
	response, err := wharf.Fetch(request)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d %s", response.Status, response.Body), nil
}

func chance(*wharf.Call, None) (string, error) {
	var secure [8]byte
	if _, err := crypto.Read(secure[:]); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{
		"random":   rand.Uint32(),
		"secure":   binary.LittleEndian.Uint32(secure[:]),
		"hash":     fmt.Sprint(maphash.String(maphash.MakeSeed(), "a")),
		"clock_ms": time.Now().UnixMilli(),
	})
	return string(text), err
}
