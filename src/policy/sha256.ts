/** SHA-256 of a text's UTF-8, in lower-case hex: at once, where compiling and admin calls want it so. Requests have the platform's own. */
import { sha256 as digest } from '@noble/hashes/sha2.js';

const UTF8 = new TextEncoder();

export function sha256(text: string): string {
  return hexOf(digestOf(text));
}

export function digestOf(text: string): Uint8Array {
  return digest(UTF8.encode(text));
}

export function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
