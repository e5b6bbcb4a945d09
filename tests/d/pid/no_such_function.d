/* SPDX-License-Identifier: Apache-2.0 */
/* A function that the target does not have. */
/* flags: -q -xerrtags -c /bin/true */
/* status: 1 */
/* stderr: does not match any probes */
pid$target::no_such_function_anywhere:entry
{
	exit(0);
}
