package journal

var DecodeOperation = decodeOperation
