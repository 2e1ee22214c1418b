/** SHA-256 of a text's UTF-8, in lower-case hex: at once, where compiling and admin calls want it so. Requests have the platform's own. */
import { sha256 as digest } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';

export function sha256(text: string): string {
  return bytesToHex(digest(utf8ToBytes(text)));
}
