/** Inputs that were worth keeping, one file each: they are judged first in every run, and new ones are made from them. */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export function corpusFolder(name: string): string {
  return fileURLToPath(new URL(`corpus/${name}/`, import.meta.url))
}

/** As latin1: one character is one byte. */
export function readCorpus(name: string, folder = corpusFolder(name)): string[] {
  return readdirSync(folder)
    .sort()
    .map((file) => readFileSync(`${folder}${file}`, 'latin1'))
}
