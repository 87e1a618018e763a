// Package result is the result of one scenario on one backend: what the checker's verdict says in a few fields, the files that hold it, and its
// text for a terminal. Each process that runs scenarios writes its results below the output directory; package report reads them and presents them.
package result
