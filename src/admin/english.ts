/**
 * What is wrong with an input, in English: by itself zod's small variant says "Invalid input" of everything.
 *
 * Imported for what it does, by whoever shows messages that zod words.
 */
import { en } from 'zod/locales';
import * as z from 'zod/mini';

z.config(en());
