/* SPDX-License-Identifier: Apache-2.0 */
/* $target without a target: the description is shown as it was written. */
/* flags: -e */
/* status: 1 */
/* stderr: pid0 does not contain a valid pid */
pid$target::malloc:entry
{
	exit(0);
}
