/* SPDX-License-Identifier: Apache-2.0 */
/* A number is a probe's; -Z does not help, as no probe will ever have it. */
/* flags: -Z -xerrtags */
/* status: 1 */
/* stderr: [D_PDESC_INVAL] line 6: invalid probe identifier 99999999: Unknown probe identifier */
99999999
{
	exit(0);
}
