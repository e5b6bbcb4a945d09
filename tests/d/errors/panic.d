/* SPDX-License-Identifier: Apache-2.0 */
/* What no program of the kernel's can do is an error, even where it is allowed. */
/* flags: -q -w -xerrtags */
/* status: 1 */
/* stderr: panic() is not implemented (yet) */
BEGIN
{
	panic();
}
