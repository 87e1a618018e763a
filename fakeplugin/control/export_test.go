package control

// OpenAPI is the description of the API, in YAML.
func OpenAPI() []byte { return openAPI }
