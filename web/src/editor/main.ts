// SPDX-License-Identifier: Apache-2.0
// editor.js: what is loaded after the first picture.
export { makeEditor, type Editor, type EditorEvents } from './editor';
export { default as uPlot } from 'uplot';
